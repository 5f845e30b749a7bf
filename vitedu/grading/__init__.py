"""Grade a class of untrusted notebooks. The parent process judges; workers only run code.

``batch`` grades a class and ``student`` grades one submission. ``intake`` reads files and extracts
the answers as text, without running them. ``judge`` sends one answer to isolated workers (``box``)
over frames (``transport``) and compares here. ``store`` keeps one file for each student. ``pages``
and ``adapters`` make reports, exports and the files of other systems.
"""
