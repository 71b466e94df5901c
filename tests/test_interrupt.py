"""Ctrl-C: nothing crashes, nothing is half-written, and the exit code is 130."""

import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

from inopca_jax._files import remove_unfinished, whole_file
from inopca_jax._interrupt import deferred_interrupt

# What takes long is announced just before it begins, so that the signal comes during it.
ANNOUNCED = textwrap.dedent("""
    import sys
    import jax.random as jr
    import numpy as np
    import inopca_jax as ino
    from inopca_jax._cli import main as cli
    from inopca_jax._batch import batch
    from inopca_jax._densities import fokker_planck
    from inopca_jax._tuning import search

    def announce(module, name):
        original = getattr(module, name)
        def announced(*args):
            print(name, flush=True)
            return original(*args)
        setattr(module, name, announced)

    announce(batch, "_advance")
    announce(fokker_planck, "_integrate")
    announce(search, "_loss_and_gradient")
    # On a busy machine a compilation may take longer than a command is given to stop.
    cli.PATIENCE = 100.0
    endless = ino.Config(model=ino.SpikedModel(10**6), ts=np.array([0.0, 50.0]))
    """)

# With the number of announcements after which the signal is sent: at the first one all of
# them are compiling; `simulate` goes on by calls of a compiled program.
CALLS = {
    "simulate, compiling": ("ino.simulate(endless, key=jr.key(0), trials=200)", 1),
    "simulate, running": ("ino.simulate(endless, key=jr.key(0), trials=200)", 3),
    "density": ("ino.density(endless)", 1),
    "tune": ("ino.tune(endless)", 1),
}
COMMANDS = {
    "simulate": ("simulate --p 1000000 --trials 200 --out {out}.npz", 2, ""),
    "density": ("density --out {out}.npz --plot {out}.png", 1, ""),
    "tune": (
        "tune --out {out}.npz --plot {out}.png",
        1,
        "; the best result so far is printed above",
    ),
}


def interrupted(code, announcements):
    """How a process ends that gets SIGINT after some announcements: its return code and
    what it wrote to stderr."""
    with subprocess.Popen(
        [sys.executable, "-c", f"{ANNOUNCED}\n{code}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        for _ in range(announcements):
            assert process.stdout.readline(), process.communicate()[1]
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    return process.returncode, errors


REPETITIONS = [0, *(pytest.param(i, marks=pytest.mark.slow) for i in range(1, 10))]


@pytest.mark.parametrize("repetition", REPETITIONS)
@pytest.mark.parametrize("name", CALLS)
def test_a_call_raises_keyboard_interrupt_and_python_exits_without_a_crash(
    name, repetition
):
    code, errors = interrupted(*CALLS[name])
    assert code == -signal.SIGINT
    assert errors.splitlines()[-1] == "KeyboardInterrupt"


@pytest.mark.parametrize("repetition", REPETITIONS)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_ends_with_code_130_and_no_file(name, repetition, tmp_path):
    command, announcements, more = COMMANDS[name]
    words = command.format(out=tmp_path / "out").split()
    code = f"sys.argv = ['inopca', *{words!r}]\ncli.run_from_shell()"
    code, errors = interrupted(code, announcements)
    assert (code, errors) == (130, f"inopca: stopped{more}\n")
    assert not list(tmp_path.iterdir())


def test_a_command_that_does_not_stop_is_ended_all_the_same():
    """A compilation hears nothing until it is finished; here, a loop."""
    code = textwrap.dedent("""
        import signal, time
        def busy():
            signal.signal(signal.SIGINT, lambda *_: None)
            print("busy", flush=True)
            while True:
                time.sleep(1)
        cli.main, cli.PATIENCE = busy, 0.1
        cli.run_from_shell()
        """)
    assert interrupted(code, 1) == (130, "inopca: stopped\n")


def test_the_interrupt_comes_at_the_end_of_the_block():
    done = []
    with pytest.raises(KeyboardInterrupt), deferred_interrupt() as event:  # noqa: PT012
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)  # the same key, held a little longer
        assert event.is_set()
        with deferred_interrupt() as inner:
            assert inner is event
        done.append(True)
    assert done == [True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_who_insists_is_heard_at_once(monkeypatch):
    monkeypatch.setattr("inopca_jax._interrupt.INSIST", 0.0)
    with pytest.raises(KeyboardInterrupt), deferred_interrupt():  # noqa: PT012
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("the second signal was not raised")


def test_handlers_of_the_program_and_other_threads_are_left_alone():
    own = lambda *_: None
    before = signal.signal(signal.SIGINT, own)
    try:
        with deferred_interrupt():
            assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)
    failures = []

    def elsewhere():
        try:
            with deferred_interrupt() as event:
                assert not event.is_set()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert not failures


def test_a_file_is_whole_or_as_it_was(tmp_path):
    path = tmp_path / "a.txt"
    with whole_file(path) as temporary:
        temporary.write_text("first")
        assert temporary.suffix == ".txt"
        assert not path.exists()
    with pytest.raises(KeyboardInterrupt), whole_file(path) as temporary:  # noqa: PT012
        temporary.write_text("sec")
        raise KeyboardInterrupt
    assert path.read_text() == "first"
    link = tmp_path / "link.txt"
    link.symlink_to(path)
    with whole_file(link) as temporary:
        temporary.write_text("second")
    assert path.read_text() == "second"
    assert link.is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt", "link.txt"]


def test_only_unfinished_files_are_removed(tmp_path):
    for name in (".keep", ".a.unfinished.txt", f".a.{'0' * 32}.txt", "a.txt"):
        (tmp_path / name).touch()
    before = sorted(tmp_path.iterdir())
    with whole_file(tmp_path / "a.txt") as temporary:
        temporary.touch()
        remove_unfinished(tmp_path)
        assert not temporary.exists()
        temporary.touch()
    assert sorted(tmp_path.iterdir()) == before
