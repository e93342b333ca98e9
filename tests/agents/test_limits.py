"""Limits around a backend of any kind, with time that passes when somebody waits."""

from __future__ import annotations

import threading

import pytest
from virtual import VirtualClock

from kernelwright.agents.backends.breaker import Breaker, CircuitOpenError
from kernelwright.agents.backends.gate import Gate
from kernelwright.agents.backends.limits import Limits
from kernelwright.agents.backends.pace import Entry, Window
from kernelwright.agents.backends.retrying import Patience, persist
from kernelwright.agents.backends.wrappers import Limited, Priced
from kernelwright.agents.chat import BackendError, ChatRequest, Completion

REQUEST = ChatRequest("m", (("user", "a" * 400),), 300, 0.5, 7)
BUSY = BackendError("transient", "busy")


class Scripted:
    """Answers with a list, then with the last of it, and says when it was asked."""

    model, priced, missing = "m", False, ()

    def __init__(self, *answers, tokens=(100, 50)):
        self.answers, self.times, self.clock, self.tokens = list(answers), [], None, tokens

    def complete(self, request):
        self.times.append(self.clock.now())
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BackendError):
            raise answer
        prompt, completion = self.tokens
        return Completion(
            answer, "stop", "m", "id", prompt_tokens=prompt, completion_tokens=completion
        )


def limited(model, **limits):
    clock = model.clock = VirtualClock()
    limits = Limits(**limits)
    return Limited(model, limits, Gate(limits, clock))


def most_in_a_minute(times):
    return max(sum(1 for t in times if start <= t < start + 60) for start in times)


def test_requests_a_minute_are_kept_to_in_every_minute():
    model = Scripted("hi")
    backend = limited(model, requests_per_minute=10)
    for _ in range(35):
        backend.complete(REQUEST)
    assert most_in_a_minute(model.times) == 10
    assert model.times[-1] == 180.0


def test_tokens_a_minute_are_reserved_before_and_settled_after():
    model = Scripted("hi")  # 400 of 1000 are set aside for a call, which takes 150
    backend = limited(model, tokens_per_minute=1000)
    for _ in range(12):
        backend.complete(REQUEST)
    # 150 each were settled: a fifth call fits beside four (600 + 400), a sixth does not.
    assert model.times[:6] == [0.0] * 5 + [60.0]
    assert most_in_a_minute(model.times) == 5


def test_a_request_larger_than_the_limit_passes_alone():
    model = Scripted("hi", tokens=(1000, 1000))
    backend = limited(model, tokens_per_minute=100)
    for _ in range(3):
        backend.complete(REQUEST)
    assert model.times == [0.0, 60.0, 120.0]


def test_a_window_forgets_what_is_a_minute_old():
    window = Window(2)
    first = window.take(1, 0.0)
    assert isinstance(first, Entry)
    assert isinstance(window.take(1, 30.0), Entry)
    assert window.take(1, 30.0) == 30.0
    assert window.take(2, 59.0) == 31.0
    assert isinstance(window.take(1, 60.0), Entry)
    window.give_back(first)


def test_many_threads_share_one_window():
    window, taken = Window(50), []

    def work():
        found = [window.take(1, 1.0) for _ in range(100)]
        taken.extend(entry for entry in found if isinstance(entry, Entry))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 50


def test_concurrency_is_kept_to_by_threads():
    now, most, lock = [0], [0], threading.Lock()
    together = threading.Barrier(2, timeout=5)

    class Slow(Scripted):
        def complete(self, request):
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            together.wait()
            with lock:
                now[0] -= 1
            return super().complete(request)

    model = Slow("hi")
    model.clock = VirtualClock()
    backend = Limited(model, Limits(concurrency=2))
    threads = [threading.Thread(target=backend.complete, args=(REQUEST,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 2
    assert len(model.times) == 8


def test_the_breaker_opens_rests_and_lets_one_call_through():
    model = Scripted(BUSY, BUSY, BUSY, BUSY, "hi")
    backend = limited(model, breaker=3, cooldown=30.0)
    for _ in range(3):
        with pytest.raises(BackendError, match="busy"):
            backend.complete(REQUEST)
    with pytest.raises(CircuitOpenError, match="3 calls in a row failed; the next is made in 30 s"):
        backend.complete(REQUEST)
    assert len(model.times) == 3
    model.clock.sleep(30)
    with pytest.raises(BackendError, match="busy"):  # half open: one, which fails
        backend.complete(REQUEST)
    with pytest.raises(CircuitOpenError):
        backend.complete(REQUEST)
    model.clock.sleep(30)
    assert backend.complete(REQUEST).text == "hi"
    assert backend.complete(REQUEST).text == "hi"
    assert len(model.times) == 6


def test_one_call_at_a_time_tries_a_breaker_that_is_half_open():
    breaker = Breaker(1, 10.0)
    breaker.enter(0.0)
    breaker.leave(0.0, failed=True)
    breaker.enter(10.0)
    with pytest.raises(CircuitOpenError):
        breaker.enter(10.0)
    breaker.leave(11.0, failed=False)
    breaker.enter(11.0)


@pytest.mark.parametrize("kind", ["permanent", "repairable", "content"])
def test_a_server_that_answers_is_not_down(kind):
    model = Scripted(BUSY, BackendError(kind, "no"), BUSY, "hi")
    backend = limited(model, breaker=2)
    for _ in range(3):
        with pytest.raises(BackendError):
            backend.complete(REQUEST)
    assert backend.complete(REQUEST).text == "hi"


def test_no_room_within_the_limits_says_nothing_of_the_server():
    model = Scripted("hi")
    backend = limited(model, requests_per_minute=1, breaker=2)
    gate, clock = backend._gate, model.clock
    backend.complete(REQUEST)
    for _ in range(3):
        with pytest.raises(BackendError, match="leaves no room"), gate.admit(REQUEST, 1.0):
            pass
    clock.sleep(60.0)
    assert backend.complete(REQUEST).text == "hi"


def test_a_call_that_was_not_made_leaves_a_breaker_as_it_was():
    breaker = Breaker(1, 10.0)
    breaker.enter(0.0)
    breaker.leave(0.0, failed=True)
    breaker.enter(10.0)
    breaker.leave(10.0, failed=None)
    breaker.enter(10.0)
    with pytest.raises(CircuitOpenError):
        breaker.enter(10.0)


def test_an_open_breaker_is_not_waited_for():
    model = Scripted(BUSY)
    backend = limited(model, breaker=2, retries=9)
    with pytest.raises(CircuitOpenError):
        backend.complete(REQUEST)
    assert len(model.times) == 2


def test_retries_wait_longer_and_longer_or_as_the_server_says():
    model = Scripted(BUSY, BUSY, BackendError("transient", "wait", after_s=7.0), BUSY, "hi")
    backend = limited(model, retries=4)
    assert backend.complete(REQUEST).text == "hi"
    assert model.clock.slept == [0.5, 1.0, 7.0, 4.0]


def test_nobody_waits_for_ever_because_a_server_says_so():
    model = Scripted(BackendError("transient", "later", after_s=1e300))
    backend = limited(model, retries=5)
    with pytest.raises(BackendError, match="attempt 1, the last"):
        backend.complete(REQUEST)
    assert model.clock.now() == 0.0


def test_the_last_attempt_says_that_it_was():
    clock = VirtualClock()

    def attempt(left_s):
        raise BackendError("transient", f"{left_s:g} s left")

    with pytest.raises(BackendError, match=r"0.5 s left \(attempt 4, the last\)"):
        persist(attempt, Patience(retries=9, deadline_s=4.0), clock)
    assert clock.now() <= 4.0


def test_the_time_for_all_calls_ends():
    model = Scripted("hi")
    backend = limited(model, seconds=100.0)
    backend.complete(REQUEST)
    model.clock.sleep(99)
    backend.complete(REQUEST)
    model.clock.sleep(1)
    with pytest.raises(BackendError, match="the 100 s for calls") as caught:
        backend.complete(REQUEST)
    assert caught.value.kind == "permanent"
    assert len(model.times) == 2


def test_no_room_within_the_time_is_said_at_once():
    model = Scripted("hi")
    backend = limited(model, requests_per_minute=1, seconds=50.0)
    backend.complete(REQUEST)
    with pytest.raises(BackendError, match=r"requests_per_minute leaves no room for 60 s"):
        backend.complete(REQUEST)
    assert model.clock.slept == []


def test_every_attempt_of_a_backend_that_makes_its_own_is_limited():
    from kernelwright.agents.backends.openai import OpenAI

    model = OpenAI(model="m", base_url="http://127.0.0.1:9/v1", retries=5)
    times = []

    def attempt(wire, request, left_s):
        times.append(model._gate.clock.now())
        raise BackendError("transient", "busy")

    model._call = attempt
    limits = Limits(requests_per_minute=2)
    clock = VirtualClock()
    with pytest.raises(BackendError, match="attempt 6, the last"):
        Limited(model, limits, Gate(limits, clock)).complete(REQUEST)
    assert len(times) == 6
    assert most_in_a_minute(times) == 2


def test_prices_are_put_around_any_backend():
    model = Scripted("hi")
    model.clock = VirtualClock()
    backend = Priced(model, {"prompt": 2e4, "completion": 1e4})
    assert backend.priced
    assert not model.priced
    assert backend.complete(REQUEST).usd == pytest.approx(100 * 0.02 + 50 * 0.01)


def test_two_layers_of_retries_are_refused():
    from kernelwright.agents.backends.openai import OpenAI
    from kernelwright.env.options import OptionError

    with pytest.raises(OptionError) as caught:
        Limited(OpenAI(model="m", base_url="http://127.0.0.1:9/v1"), Limits(retries=1))
    assert caught.value.option == "limits.retries"
