"""From a folder of returned files to answers as text. Nothing is executed."""
