"""For the tests of the box: a stand-in for the grader's worker that runs any code it is sent."""

WORKER = """
import os

def main(requests, replies):
    while prefix := os.read(requests, 8):
        code, length = b"", int.from_bytes(prefix, "little")
        while len(code) < length:
            code += os.read(requests, length - len(code))
        names = {"requests": requests, "replies": replies}
        try:
            exec(code.decode(), names)
            out = repr(names.get("out"))
        except SystemExit:
            raise
        except MemoryError as error:
            if "escapes" in names:
                raise
            out = repr(error)
        except BaseException as error:
            out = repr(error)
        text = out.encode()
        os.write(replies, len(text).to_bytes(8, "little") + text)
"""
FILES = {"vitedu/grading/box/notebook.py": WORKER}


def frame(text):
    """Make a frame of code."""
    data = text.encode()
    return len(data).to_bytes(8, "little") + data


def ask(worker, code, seconds=20.0):
    """Run code in a worker and give the repr of ``out``, or of the exception."""
    return worker.ask(frame(code), seconds)[8:].decode()
