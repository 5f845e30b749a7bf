"""What an answer can do to its process and to the line that leads to the judge."""

from attacks import VALUE, Attack, called, loaded

# finds the nonce and the pipe of the reply in the frames below
FRAMES = """
import os, sys
from vitedu.grading.line.wire import pack
frame, nonce, sink = sys._getframe(), None, None
while frame:
    nonce = frame.f_locals.get('nonce', nonce)
    if isinstance(frame.f_locals.get('sink'), int):
        sink = frame.f_locals['sink']
    frame = frame.f_back
"""
PIPES = """
import os, stat
pipes = []
for fd in range(3, 2048):
    try:
        if stat.S_ISFIFO(os.fstat(fd).st_mode):
            pipes.append(fd)
    except OSError:
        pass
assert len(pipes) == 2, pipes
"""
EVERY_PIPE = (
    "import os\nfor fd in range(3, 1024):\n    try:\n        {}\n    except OSError:\n        pass"
)

LINE = {
    "reply_before_the_reply": Attack(
        called(FRAMES + "os.write(sink, pack({'nonce': nonce, 'done': {}}))"), ("protocol",)
    ),
    "whole_forged_reply": Attack(
        called(
            FRAMES + "from vitedu.grading.line.messages import write_observation\n"
            "from vitedu.checks.probing import Observation\n"
            "seen = Observation({'output': x * 0}, types={'output': 'tensor'})\n"
            "head, arrays = write_observation(seen)\nos.write(sink, pack({'nonce': nonce, 'done': head}, arrays))\nos._exit(0)"
        ),
        ("crashed", "protocol"),
    ),
    "forged_nonce": Attack(
        called(
            FRAMES
            + "os.write(sink, pack({'nonce': '0' * 16, 'done': {}}))\nos.dup2(os.open(os.devnull, os.O_WRONLY), sink)"
        ),
        ("protocol", "crashed"),
    ),
    "writes_on_every_pipe": Attack(
        called(EVERY_PIPE.format("os.write(fd, b'passed' * 100)")),
        ("protocol", "flooded", "crashed"),
    ),
    "announces_a_terabyte": Attack(
        called(EVERY_PIPE.format("os.write(fd, (2**40).to_bytes(8, 'little'))")),
        ("protocol", "flooded"),
    ),
    "floods_every_pipe": Attack(
        called(
            EVERY_PIPE.format(
                "[os.write(fd, (2**23).to_bytes(8, 'little') + b'x' * 65528) for _ in range(400)]"
            )
        ),
        ("protocol", "flooded", "crashed", "timeout"),
    ),
    "many_large_arrays": Attack(
        called(
            "import vitedu.grading.line.messages as m, vitedu.grading.box.worker as w\n"
            "if not hasattr(w, 'before'):\n    w.before = w.write_observation\n"
            "    def forged(seen):\n        seen.arrays.update({f'more{i}': torch.zeros(2**21) for i in range(8)})\n        return w.before(seen)\n"
            "    w.write_observation = forged"
        ),
        ("protocol", "flooded", "memory", "zeros"),
    ),
    "reads_every_pipe": Attack(
        called(EVERY_PIPE.format("os.set_blocking(fd, False); os.read(fd, 2**20)")),
        ("zeros", "crashed", "protocol", "unstable"),
    ),
    "swallows_requests": Attack(
        called(
            PIPES
            + "import threading\nthreading.Thread(target=lambda: os.read(pipes[0], 10), daemon=True).start()"
        ),
        (
            "crashed",
            "protocol",
            "timeout",
            "unstable",
        ),  # the worker sometimes reads first, in one run of three
    ),
    "closes_every_pipe": Attack(
        called("import os\nos.closerange(3, 4096)"), ("crashed", "protocol")
    ),
    "holds_its_pipes": Attack(
        loaded(
            PIPES
            + "import threading, time\n[os.dup(fd) for fd in pipes for _ in range(3)]\nthreading.Thread(target=time.sleep, args=(3600,)).start()"
        ),
        "zeros",
    ),
    "thread_that_keeps_writing": Attack(
        called(
            PIPES
            + "import threading\ndef write():\n    while True:\n        for fd in pipes:\n            try:\n                os.write(fd, b'\\xff' * 8)\n"
            "            except OSError:\n                pass\nthreading.Thread(target=write, daemon=True).start()"
        ),
        ("protocol", "flooded", "crashed"),
    ),
    "writes_at_exit": Attack(
        loaded(
            PIPES + "import atexit\nfor fd in pipes:\n    atexit.register(os.write, fd, b'passed')"
        ),
        "zeros",
    ),
    "unknown_facts": Attack(
        called(
            "import sys\nframe = sys._getframe()\nwhile 'seen' not in frame.f_locals:\n    frame = frame.f_back\nframe.f_locals['seen'].facts['points'] = 4"
        ),
        ("protocol",),
    ),
    "an_object_as_a_fact": Attack(
        called(
            "import sys\nframe = sys._getframe()\nwhile 'seen' not in frame.f_locals:\n    frame = frame.f_back\nframe.f_locals['seen'].types['output'] = object()"
        ),
        ("protocol", "zeros"),
    ),
    # --- output ------------------------------------------------------------------------------
    "prints_200_mb": Attack(loaded("for _ in range(200):\n    print('x' * 10**6)"), "zeros"),
    "writes_200_mb_to_stdout": Attack(
        loaded("import os\nfor _ in range(200):\n    os.write(1, b'x' * 10**6)"), "zeros"
    ),
    "prints_html": Attack(
        loaded("print('<script>alert(1)</script>\\x1b[2J\\0\\u202e</pre>')"), "zeros"
    ),
    "closes_stdout": Attack(
        loaded("import os, sys\nsys.stdout.close()\nos.close(1)\nos.close(2)"), "zeros"
    ),
    "named_like_html": Attack(
        "def softmax(x, dim=-1):\n    return type('<script>alert(2)</script>', (), {})()\n",
        "nothing",
    ),
    "error_like_html": Attack(
        called(
            "raise type('=cmd()', (ValueError,), {})('<script>alert(3)</script>' + 'x' * 10**7)"
        ),
        "nothing",
    ),
    # --- files and processes -----------------------------------------------------------------
    "fills_its_disk": Attack(
        loaded(
            "import os\ntry:\n    for i in range(100):\n        with open(os.path.join(os.environ['TMPDIR'], str(i)), 'wb') as file:\n            file.write(b'x' * 10**7)\nexcept OSError:\n    pass",
            VALUE,
        ),
        "full",
    ),
    "too_many_files": Attack(
        loaded(
            "kept = []\ntry:\n    while True:\n        kept.append(open('/dev/null'))\nexcept OSError:\n    kept.clear()",
            VALUE,
        ),
        "full",
    ),
    "too_many_threads": Attack(
        loaded(
            "import threading, time\ntry:\n    for _ in range(10000):\n        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nexcept BaseException:\n    pass"
        ),
        ("zeros", "memory", "crashed", "nothing"),
    ),
    "fork_bomb": Attack(
        loaded(
            "import os\ntry:\n    while True:\n        os.fork()\nexcept OSError:\n    pass", VALUE
        ),
        "full",
    ),
    "child_in_a_session_of_its_own": Attack(
        loaded(
            "import os, subprocess, sys\ntry:\n    subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\nexcept OSError:\n    pass\n"
            "try:\n    if os.fork() == 0:\n        os.setsid()\n        import time\n        time.sleep(600)\nexcept OSError:\n    pass",
            VALUE,
        ),
        "full",
    ),
    "multiprocessing": Attack(
        loaded(
            "import multiprocessing\ntry:\n    multiprocessing.get_context('fork').Process(target=print).start()\nexcept OSError:\n    pass",
            VALUE,
        ),
        "full",
    ),
    "kills_everyone": Attack(
        loaded(
            "import os, signal\nfor number in [-1, 0, os.getppid(), *range(2, 500)]:\n    for kill in (os.kill, os.killpg):\n        try:\n            number != os.getpid() and kill(number, signal.SIGKILL)\n        except OSError:\n            pass"
        ),
        "zeros",
    ),
    "traces_its_parent": Attack(
        loaded(
            "import ctypes, os\nlibc = ctypes.CDLL(None)\nfor number in (os.getppid(), 1, 2, 3):\n    assert libc.ptrace(16, number, 0, 0) == -1"
        ),
        "zeros",
    ),
    "reads_other_processes": Attack(
        loaded(
            "import os\nread = []\nfor number in ['self', *range(1, 300)]:\n    for name in ('mem', 'environ', 'maps', 'cmdline', 'fd/3'):\n        try:\n            read.append(open(f'/proc/{number}/{name}', 'rb').read(16))\n        except OSError:\n            pass\nassert not read"
        ),
        "zeros",
    ),
    "opens_sockets": Attack(
        loaded(
            "import socket\nfor family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):\n    try:\n        socket.socket(family)\n        raise RuntimeError('a socket')\n    except OSError:\n        pass"
        ),
        "zeros",
    ),
    "reads_the_disk": Attack(
        loaded(
            "import glob, os\nread = []\nfor folder in ('/etc', '/home', '/var', '/srv', '/mnt', {HOME!r}, {HERE!r}, {OUT!r}):\n"
            "    for path in glob.glob(folder + '/**', recursive=True):\n        try:\n            read.append((path, open(path, 'rb').read(1)))\n        except OSError:\n            pass\nassert not [path for path, _ in read if 'alternatives' not in path and 'ld.so' not in path], read[:5]"
        ),
        "zeros",
    ),
    "writes_everywhere": Attack(
        loaded(
            "import os\nfor folder in ('/', '/box', '/box/vitedu', '/etc', '/home', {HOME!r}, {HOME!r} + '/.ipython/profile_default/startup', '/dev/shm', '/var/tmp', {HERE!r}, {OUT!r}, {OUT!r} + '/submissions', os.path.dirname(torch.__file__)):\n"
            "    try:\n        open(folder + '/startup.py', 'w').write('raise SystemExit')\n    except OSError:\n        continue\n    raise RuntimeError(folder)"
        ),
        "zeros",
    ),
    "sees_no_secret_variable": Attack(
        loaded(
            "import os\nassert not [name for name in os.environ if 'KEY' in name or 'TOKEN' in name or 'VITEDU' in name], list(os.environ)"
        ),
        "zeros",
    ),
}
