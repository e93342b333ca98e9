"""The simulated model behind a socket: what the real client makes of all that may go wrong."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time

import openai
import pytest

from kernelwright.agents.backends.mock import Mock
from kernelwright.agents.backends.openai import OpenAI
from kernelwright.agents.chat import ChatRequest
from kernelwright.agents.mock_server import mock_endpoint
from kernelwright.agents.server import chat_server
from kernelwright.agents.wire_faults import FINE, WIRE_FAULTS, Script, read_script
from kernelwright.env.options import OptionError

ASK = [{"role": "user", "content": "hello"}]
SCHEMA = {"type": "object", "properties": {}, "additionalProperties": False}


@pytest.fixture
def serve(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    servers = []

    def start(wire="", **options):
        server = mock_endpoint(seed=3, wire=wire, **options)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def client(serve):
    made = []

    def start(wire="", **options):
        server = serve(wire, **options)
        made.append(openai.OpenAI(api_key="none", base_url=server.url, max_retries=0, timeout=0.4))
        return made[-1]

    yield start
    for one in made:
        one.close()


def chat(one, model="mock", **options):
    return one.chat.completions.create(model=model, messages=ASK, **options)


RAISES = {
    "rate_limit": (openai.RateLimitError, "rate_limit_exceeded"),
    "rate_limit_hint": (openai.RateLimitError, "rate_limit_exceeded"),
    "rate_limit_long": (openai.RateLimitError, "rate_limit_exceeded"),
    "quota": (openai.RateLimitError, "insufficient_quota"),
    "bad_key": (openai.AuthenticationError, "invalid_api_key"),
    "forbidden": (openai.PermissionDeniedError, None),
    "no_model": (openai.NotFoundError, "model_not_found"),
    "too_long": (openai.BadRequestError, "context_length_exceeded"),
    "server_error": (openai.InternalServerError, None),
    "overloaded": (openai.InternalServerError, None),
    "hang": (openai.APITimeoutError, None),
    "drop": (openai.APIConnectionError, None),
    "cut_body": (openai.APIConnectionError, None),
    "broken_json": (json.JSONDecodeError, None),
}


@pytest.mark.parametrize("name", RAISES)
def test_the_client_raises_what_it_raises_for_real_servers(client, name):
    kind, code = RAISES[name]
    with pytest.raises(kind) as caught:
        chat(client(name))
    assert getattr(caught.value, "code", None) == code


# What the client lets through, with status 200.
PASSES = {
    "html": lambda found: isinstance(found, str),
    "no_usage": lambda found: found.usage is None and found.choices,
    "no_choices": lambda found: found.choices == [],
    "null_choices": lambda found: found.choices is None,
    "error_in_200": lambda found: found.choices is None and found.error,
    "null_content": lambda found: found.choices[0].message.content is None,
    "content_filter": lambda found: found.choices[0].finish_reason == "content_filter",
    "odd_finish": lambda found: found.choices[0].finish_reason == "eos_token",
}


@pytest.mark.parametrize("name", PASSES)
def test_the_client_lets_through_what_it_lets_through(client, name):
    assert PASSES[name](chat(client(name)))


def test_a_schema_is_refused_only_where_one_is_asked_for(client):
    one = client("no_schema=1")
    assert chat(one).choices
    wanted = {"name": "answer", "strict": True, "schema": SCHEMA}
    with pytest.raises(openai.BadRequestError, match="response_format"):
        chat(one, response_format={"type": "json_schema", "json_schema": wanted})


def test_every_wire_fault_is_tried():
    assert {*RAISES, *PASSES, "no_schema"} == set(WIRE_FAULTS)


def test_turns_come_in_order_and_then_all_is_well(client):
    one = client("drop,ok,server_error")
    seen = []
    for _ in range(5):
        try:
            seen.append(chat(one).object)
        except openai.APIError as error:
            seen.append(type(error).__name__)
    fine = "chat.completion"
    assert seen == ["APIConnectionError", fine, "InternalServerError", fine, fine]


def request(seed):
    return ChatRequest("mock", (("user", "hello"),), 100, 0.0, seed)


def test_rates_are_kept_and_the_order_of_calls_decides_nothing():
    rates = {"drop": 0.2, "rate_limit": 0.1}
    forwards, backwards = Script(rates=rates, seed=1), Script(rates=rates, seed=1)
    names = [forwards.next(request(seed)) for seed in range(2000)]
    assert names == [backwards.next(request(seed)) for seed in reversed(range(2000))][::-1]
    assert names.count("drop") / 2000 == pytest.approx(0.2, abs=0.03)
    assert names.count("rate_limit") / 2000 == pytest.approx(0.1, abs=0.03)
    # The same request again is another draw, so that trying again helps.
    failed = [seed for seed, name in enumerate(names) if name != FINE]
    again = [forwards.next(request(seed)) for seed in failed]
    assert again.count(FINE) / len(failed) == pytest.approx(0.7, abs=0.1)


@pytest.mark.parametrize(
    ("wire", "said"),
    [
        ("dropp", "one of rate_limit"),
        ("drop=x", "name=rate"),
        ("drop=0.7,hang=0.7", "0 to 1 altogether"),
        ("drop=-0.1", "0 to 1 altogether"),
        ("drop=nan", "0 to 1 altogether"),
    ],
)
def test_a_script_that_makes_no_sense_is_refused(wire, said):
    with pytest.raises(OptionError, match=said):
        read_script(wire)


def test_the_backend_gets_through_what_passes(serve):
    server = serve("rate_limit_hint,server_error,drop,ok")
    backend = OpenAI(model="mock", base_url=server.url, retries=3)
    backend._sleep = lambda seconds: None
    assert backend.complete(request(0)).text.startswith("Tiling")


def test_a_model_is_found_by_name(client):
    one = client(persona="swift")
    assert [model.id for model in one.models.list()] == ["mock-swift"]
    assert one.models.retrieve("mock-swift").id == "mock-swift"
    with pytest.raises(openai.NotFoundError):
        one.models.retrieve("other")


def test_responses_say_what_chat_completions_say(client):
    one = client()
    (choice,) = chat(one, max_tokens=64, temperature=1.0).choices
    found = one.responses.create(model="mock", input=ASK, max_output_tokens=64, temperature=1.0)
    assert found.output_text == choice.message.content
    assert found.status == "completed"
    assert found.usage.output_tokens > 0
    again = one.responses.create(model="mock", input="hello", max_output_tokens=64, temperature=1.0)
    assert again.output_text == found.output_text


def test_responses_tell_of_cut_answers_and_refusals(client):
    cut = client().responses.create(model="mock", input="hello", max_output_tokens=16)
    assert (cut.status, cut.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    no = client(faults="refused=1").responses.create(model="mock", input="hello")
    assert no.output[0].content[0].type == "refusal"


def test_a_forced_tool_is_called(client):
    tool = {"type": "function", "function": {"name": "propose", "parameters": SCHEMA}}
    forced = {"type": "function", "function": {"name": "propose"}}
    for choice in (forced, "required"):
        (found,) = chat(client(), tools=[tool], tool_choice=choice).choices
        (call,) = found.message.tool_calls
        assert (call.function.name, found.message.content) == ("propose", None)
        assert found.finish_reason == "tool_calls"


def test_time_is_virtual_and_told(client):
    began = time.perf_counter()
    raw = client(persona="careful").chat.completions.with_raw_response.create(
        model="mock-careful", messages=ASK
    )
    assert float(raw.headers["x-virtual-seconds"]) > 4
    assert time.perf_counter() - began < 4


def test_a_call_that_hangs_ends_with_the_server():
    server = chat_server(Mock(seed=0), read_script("hang"))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    failed = []

    def ask():
        with (
            openai.OpenAI(api_key="none", base_url=server.url, max_retries=0, timeout=30) as one,
            pytest.raises(openai.APIConnectionError),
        ):
            chat(one)
        failed.append(True)

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(0.2)
    server.shutdown()
    server.server_close()
    asking.join(5)
    assert failed == [True]


def test_the_command_serves_until_it_is_interrupted(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    command = [sys.executable, "-P", "-m", "kernelwright", "mock-server", "--persona", "bold"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        said = process.stdout.readline()
        url = re.fullmatch(r"mock-bold at (http://127\.0\.0\.1:\d+/v1) .*\n", said)[1]
        with openai.OpenAI(api_key="none", base_url=url, max_retries=0) as one:
            assert chat(one, "mock-bold").model == "mock-bold"
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(10) == 0
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--persona", "nobody"], "one of swift"),
        (["--faults", "many"], "one of frontier"),
        (["--wire", "storm"], "one of rate_limit"),
    ],
)
def test_the_command_refuses_what_there_is_not(options, said):
    command = [sys.executable, "-P", "-m", "kernelwright", "mock-server", *options]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert said in found.stderr
