"""The noise laboratory: what rules claim where the truth is known.

Kernels are simulated (on noise models, or on recorded traces of identical kernels on this machine)
or real, and their true speedups are planted. A rule, ours or anyone's, gets kernels to time and
says which is faster; the laboratory counts what it got wrong.
"""

RULES: dict[str, str] = {
    "ours": "kernelwright.search.laboratory.rules:ours",
    "mean_of_10": "kernelwright.search.laboratory.rules:mean_of_10",
    "min_of_30": "kernelwright.search.laboratory.rules:min_of_30",
    "median_of_50": "kernelwright.search.laboratory.rules:median_of_50",
    "fast_1": "kernelwright.search.laboratory.rules:fast_1",
    "do_bench": "kernelwright.search.laboratory.rules:do_bench",
}
"""Rules by name; any dotted path or ``file.py:name`` of a `Rule` works too."""
