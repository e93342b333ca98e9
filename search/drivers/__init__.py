"""Drivers over spaces, one small file each. A driver has ask and tell, and is a pure function of
seed, batch and told trials.
"""

from __future__ import annotations

DRIVERS: dict[str, str] = {
    "auto": "kernelwright.search.drivers.auto:Auto",
    "random": "kernelwright.search.drivers.random:Random",
    "grid": "kernelwright.search.drivers.grid:Grid",
    "coordinate_descent": "kernelwright.search.drivers.coordinate_descent:CoordinateDescent",
    "annealing": "kernelwright.search.drivers.annealing:Annealing",
    "hill_climb": "kernelwright.search.drivers.hill_climb:HillClimb",
    "evolution": "kernelwright.search.drivers.evolution:Evolution",
    "cost_model": "kernelwright.search.drivers.cost_model:CostModel",
    "map_elites": "kernelwright.search.drivers.map_elites:MapElites",
    "pareto": "kernelwright.search.drivers.pareto:Pareto",
    "bandit": "kernelwright.search.drivers.bandit:Bandit",
    "beam": "kernelwright.search.drivers.beam:Beam",
    "mcts": "kernelwright.search.drivers.mcts:Mcts",
    "model_topk": "kernelwright.search.drivers.model_topk:ModelTopK",
    "listed": "kernelwright.search.drivers.listed:Listed",
}
# Drivers that propose nothing by themselves: somebody hands candidates in.
FED_DRIVERS: dict[str, str] = {"external": "kernelwright.search.drivers.external:External"}
