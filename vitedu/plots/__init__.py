"""Every figure of the course: one module a chapter, functions that return a matplotlib Figure.

Nothing is re-exported: ``from vitedu.plots.patches import show_patches`` says where to look.
"""
