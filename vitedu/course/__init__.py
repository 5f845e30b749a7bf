"""The course as data: its notebooks and their lint, the references' text, and students' results."""
