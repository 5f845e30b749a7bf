"""An answer in a worker, with the interface of an answer in this process.

Role: ``RemoteAnswer``, the judge's side of the conversation with ``worker``. Replies are read
strictly, and their content is not trusted. ``judge`` uses them, and ``conversation`` transfers the
bytes.
"""

import secrets
import time
from collections.abc import Iterator, Sequence
from typing import Any

from vitedu.checks.observing.answers import MIN_SECONDS, AnswerInfo, Call, PlainValue
from vitedu.checks.observing.case import Case, size_of
from vitedu.checks.observing.observation import Observation
from vitedu.exercises import find
from vitedu.grading.box.conversation import Worker
from vitedu.grading.box.limits import Limits
from vitedu.grading.box.package_view import earlier_exercises, visible_sources
from vitedu.grading.grades import Answer
from vitedu.grading.transport.messages import (
    LoadResult,
    read_fields,
    read_observations,
    write_case,
)
from vitedu.grading.transport.wire import WireError, clean, pack, unpack

GRACE = 3.0  # seconds after its time limit until a worker counts as stuck
FULL_NUMBERS = 2**17  # numbers in the tensors of a request that gets no further case
MAX_BYTES = 24 * 2**20  # the most bytes of all observations of one worker together


class RemoteAnswer:
    """An answer in a worker; an implementation of ``answers.Source``."""

    answer = None

    def __init__(self, worker: Worker, limits: Limits):
        self.worker, self.limits = worker, limits
        self.bytes_left = MAX_BYTES
        # A limit for all requests together: an answer could use up the time of every single one.
        self.budget = limits.worker_seconds

    @property
    def seconds(self) -> float:
        """Time limit of all calls of a check; the worker has ``GRACE`` more to reply."""
        return max(1.0, self.limits.call_seconds - GRACE)

    def load(
        self,
        answer: Answer,
        forbidden: frozenset[str],
        passed: frozenset[str] = frozenset(),
        stand_ins: Sequence[str] = (),
    ) -> LoadResult:
        """Send the code to the worker and have it executed.

        Args:
            answer: with a program.
            forbidden: names of functions and kernels that it may not call.
            passed: exercises that the student has passed; their answers may serve this one.
            stand_ins: exercises whose references replace the student's own.
        """
        program = answer.program
        assert program is not None
        used = [e for e in earlier_exercises(answer.exercise) if e.id in program.uses]
        loaded = self._ask(
            {
                "do": "load",
                "name": answer.exercise,
                "kind": find(answer.exercise).kind,
                "modules": visible_sources(answer.exercise),
                "references": {e.id: e.module for e in used},
                "stand_ins": list(stand_ins),
                "own": {id: space for id, space in program.own.items() if id in passed},
                "mocks": program.mocks,
                "spaces": [[name, [*each.items()]] for name, each in program.spaces.items()],
                "targets": program.targets,
                "forbidden": sorted(forbidden),
                "seed": secrets.randbits(32),
                "seconds": 0.8 * self.limits.load_seconds,
            },
            seconds=self.limits.load_seconds,
        )
        return read_fields(LoadResult, loaded)

    def info(self, calls: list[Call]) -> AnswerInfo:
        """Have the worker describe the answer, and whether its signature accepts these calls."""
        request = {"do": "look", "calls": [[n, list(names)] for n, names in calls]}
        return read_fields(AnswerInfo, self._ask(request))

    def observe_all(self, cases: list[Case], seconds: float) -> Iterator[Observation]:
        """Have the worker run cases on the answer, for at most ``seconds`` together.

        The first case goes alone, because many answers end there. Every later request carries as
        many cases as fit, and the worker replies about as many as it has time and room for.
        """
        start, done = time.monotonic(), 0
        while done < len(cases):
            seconds_left = max(MIN_SECONDS, seconds - (time.monotonic() - start))
            observations = self._observe(cases[done:] if done else cases[:1], seconds_left)
            yield from observations
            done += len(observations)

    def _observe(self, cases: list[Case], seconds: float) -> list[Observation]:
        data: list[dict] = []
        numbers = 0
        for case in cases:
            data.append(write_case(case, ""))  # the judge gives it a secret seed
            numbers += size_of(case)
            if numbers > FULL_NUMBERS:
                break
        request = {"do": "observe_all", "cases": data, "seconds": seconds}
        observations = read_observations(self._ask(request, seconds + GRACE), len(data))
        for observation in observations:
            self.bytes_left -= sum(x.numel() * x.element_size() for x in observation.tensors())
        if self.bytes_left < 0:
            raise WireError(f"all results together have more than {MAX_BYTES} bytes.")
        return observations

    def plain(self) -> PlainValue:
        """Have the worker send the answer as a plain value."""
        return read_fields(PlainValue, self._ask({"do": "plain"}))

    def _ask(self, request: dict, seconds: float = GRACE) -> Any:
        nonce, start = secrets.token_hex(8), time.monotonic()
        frame = pack({**request, "nonce": nonce})
        try:
            reply = unpack(self.worker.ask(frame, max(0.01, min(seconds, self.budget))))
        finally:
            self.budget -= time.monotonic() - start
        if not isinstance(reply, dict) or reply.get("nonce") != nonce:
            raise WireError("the reply does not belong to this request.")
        if set(reply) == {"nonce", "failed"}:
            raise WireError(f"the worker failed: {clean(reply['failed'], 200)}")
        if set(reply) != {"nonce", "done"}:
            raise WireError("a reply has the keys nonce and done.")
        return reply["done"]
