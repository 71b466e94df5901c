"""What the commands show on terminals: colours, tables, progress."""

import os
import pty
import re
import subprocess
import sys
import termios

import jax.random as jr
import pytest

import inopca_jax as ino
from inopca_jax._cli.main import main
from inopca_jax._cli.output import print_table

from .cases import sparing

SIMULATE = ["simulate", "--p", "2000", "--t-max", "2", "--points", "3", "--trials", "3"]
SHELL = "from inopca_jax._cli.main import run_from_shell; run_from_shell()"


def on_a_terminal(*arguments, **environment):
    """Returns what a command shows whose messages go to a terminal."""
    here, there = pty.openpty()
    termios.tcsetwinsize(there, (24, 80))
    variables = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
    process = subprocess.Popen(
        [sys.executable, "-c", SHELL, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=there,
        stderr=there,
        env=variables | {"TERM": "xterm-256color"} | environment,
    )
    os.close(there)
    shown = b""
    try:
        while part := os.read(here, 4096):
            shown += part
    except OSError:  # how Linux ends the reading of a terminal whose process has ended
        pass
    os.close(here)
    process.wait()
    return shown.decode()


@pytest.mark.parametrize("value", [None, "1"])
def test_no_colours_are_printed_if_the_user_asks_for_none(value):
    shown = on_a_terminal("--help", **({} if value is None else {"NO_COLOR": value}))
    assert "simulate" in shown
    coloured = re.search(r"\x1b\[[0-9;]*[1-9][0-9;]*m", shown) is not None
    assert coloured is (value is None)


@pytest.mark.parametrize("flag", sparing([None, "--progress", "--no-progress"]))
def test_a_bar_is_shown_on_terminals_or_as_the_switch_says(flag, capfd):
    """Here the messages go to a file."""
    assert main([*SIMULATE, *([] if flag is None else [flag])]) == 0
    captured = capfd.readouterr()
    assert ("chain: 100%" in captured.err) is (flag == "--progress")
    assert "q mean" in captured.out


@pytest.mark.parametrize("run", ["simulate", "tune"])
def test_a_bar_says_that_it_compiles_until_it_moves(run, capfd):
    config = ino.Config(model=ino.SpikedModel(p=2_000), ts=[0.0, 2.0])
    if run == "simulate":
        ino.simulate(config, key=jr.key(0), trials=3, progress=True)
    else:
        ino.tune(config, steps=2, progress=True)
    first, *_, last = re.findall(r"[^\r\n]*%[^\r\n]*", capfd.readouterr().err)
    assert " 0%" in first
    assert "compiling" in first
    assert "100%" in last
    assert "compiling" not in last


@pytest.mark.slow
def test_a_bar_is_shown_on_a_terminal():
    shown = on_a_terminal(*SIMULATE)
    assert "chain: 100%" in shown
    # tqdm shows the time so far and the time that is left.
    assert re.search(r"\d\d:\d\d<(\d\d:\d\d|\?)", shown)


@pytest.mark.parametrize("columns", [30, 60, 200])
def test_a_table_fits_the_terminal_and_keeps_every_number(columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    headings = ["time", *(f"quantity {i}" for i in range(6))]
    rows = [headings, *([f"{10 * i + j}.5" for j in range(7)] for i in range(3))]
    print_table(rows, ">")
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    assert ("" in lines) is (columns < 200)
    blocks = "\n".join(lines).split("\n\n")
    for block in blocks:  # every block has the first column again
        assert [line.split()[0] for line in block.splitlines()] == [r[0] for r in rows]
    for i, row in enumerate(rows[1:], 1):
        found = [x for block in blocks for x in block.splitlines()[i].split()[1:]]
        assert found == row[1:]
