"""The course as an object: its notebooks, their lint, the references' text, and what students reached."""
