"""Grade a class of untrusted notebooks. The parent process judges; workers only run code.

The way of a submission, with no step back: ``batch`` finds it with ``intake``, which reads its
answers as text and runs nothing. ``student`` grades it, and ``judge`` each answer: ``transport``
carries the code to a worker in the ``box``, where a fork server is isolated as well as the machine
can, and carries observations back, which are judged here. ``batch`` keeps one file for each
student. ``pages`` and ``adapters`` write reports, tables and the files of other systems.
"""
