"""Grading a class of untrusted notebooks: the parent judges, the worker only runs code.

The way of data: ``submissions`` (who handed in what) -> ``extraction`` (answers as text, nothing is run) ->
``judge`` (asks boxed workers, compares here) -> ``batch`` (one file a student) -> ``reports`` and exports.
"""
