"""The results of a graded class: pages, tables, files for other programs."""
