"""The results of a graded class: pages, tables, files for other programs.

``publish`` calls the others: ``deadlines`` takes points off what is late, ``decisions`` puts a
person's points in place of the grader's.
"""
