"""An answer in a worker, with the interface of an answer in this process.

Role: ``RemoteAnswer``, the judge's side of the conversation with ``worker``. Replies are read
strictly, and their content is not trusted. ``judge`` uses them, and ``conversation`` transfers the
bytes.
"""

import secrets
import time
from collections.abc import Iterator
from typing import Any

from vitedu.checks.observing.answers import MIN_SECONDS, AnswerInfo, Call, PlainValue
from vitedu.checks.observing.case import Case
from vitedu.checks.observing.observation import Observation
from vitedu.grading.box.conversation import Worker
from vitedu.grading.box.limits import Limits
from vitedu.grading.transport.messages import read_fields, write_case
from vitedu.grading.transport.wire import WireError, clean, pack, unpack

GRACE = 3.0  # seconds after its time limit until a worker counts as stuck
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

    def info(self, calls: list[Call]) -> AnswerInfo:
        """Have the worker describe the answer, and whether its signature accepts these calls."""
        request = {"do": "look", "calls": [[n, list(names)] for n, names in calls]}
        return read_fields(AnswerInfo, self.ask(request))

    def observe_all(self, cases: list[Case], seconds: float) -> Iterator[Observation]:
        """Have the worker run cases on the answer, for at most ``seconds`` together."""
        end = time.monotonic() + seconds
        for case in cases:
            left = max(MIN_SECONDS, end - time.monotonic())
            request = {"do": "observe", "case": write_case(case, ""), "seconds": left}
            seen = read_fields(Observation, self.ask(request, left + GRACE))
            self.bytes_left -= sum(x.numel() * x.element_size() for x in seen.tensors())
            if self.bytes_left < 0:
                raise WireError(f"all results together have more than {MAX_BYTES} bytes.")
            yield seen

    def plain(self) -> PlainValue:
        """Have the worker send the answer as a plain value."""
        return read_fields(PlainValue, self.ask({"do": "plain"}))

    def ask(self, request: dict, seconds: float = GRACE) -> Any:
        """Send a request and return what was done."""
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
