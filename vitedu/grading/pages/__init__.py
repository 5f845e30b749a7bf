"""What comes out of a graded class: pages, tables, files for other programs."""
