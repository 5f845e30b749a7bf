"""What an author needs to write an exercise's checker: begin with ``kit``."""
