"""``streamgauge completion``: the script with which a shell completes commands, and the names that it is offered."""

import os
from enum import StrEnum
from typing import Annotated

import typer

from streamgauge.cli.console import CliOutput, write_bytes
from streamgauge.cli.errors import UserError
from streamgauge.cli.options import Json

_VARIABLE = "_STREAMGAUGE_COMPLETE"
"""The shell's script sets it to request the possible next words."""


class Shell(StrEnum):
    """Shells that have a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_SCRIPTS = {
    Shell.BASH: """\
_streamgauge_completion() {
    local IFS=$'\\n'
    COMPREPLY=( $( env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD %(variable)s=complete_bash $1 ) )
    return 0
}
complete -o default -F _streamgauge_completion streamgauge
""",
    Shell.ZSH: """\
#compdef streamgauge
_streamgauge_completion() {
    eval $(env _TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" %(variable)s=complete_zsh streamgauge)
}
compdef _streamgauge_completion streamgauge
""",
    Shell.FISH: """\
function _streamgauge_completion
    set --export --local _TYPER_COMPLETE_FISH_ACTION $argv[1]
    env %(variable)s=complete_fish _TYPER_COMPLETE_ARGS=(commandline -cp) streamgauge
end
complete -c streamgauge -f -a "(_streamgauge_completion get-args)" -n "_streamgauge_completion is-args"
""",
}
"""The words that may follow come from ``streamgauge`` itself, in the form that typer has for each shell."""


def command(
    kind: Annotated[Shell, typer.Argument(metavar="SHELL", help="The shell: bash, zsh or fish.")], json: Json = False
) -> None:
    """Print the script with which a shell completes commands. In bash: source <(streamgauge completion bash)"""
    from streamgauge.report.render.json import document

    script = _SCRIPTS[kind] % {"variable": _VARIABLE}
    if not json:
        write_bytes(script.encode())
    CliOutput(json).exit(document(0, kind=kind.value, script=script))


def prepare_completion() -> bool:
    """Return whether a shell requests completions; if it does, load what provides them."""
    request = os.environ.get(_VARIABLE)
    if not request:
        return False
    words = "COMP_WORDS" in os.environ and os.environ.get("COMP_CWORD", "").isdigit()
    if request not in {f"complete_{shell}" for shell in Shell} or (request == "complete_bash" and not words):
        raise UserError(
            f"The variable {_VARIABLE} is only for the script of `streamgauge completion`. "
            "Remove it from the environment."
        )
    from typer._completion_classes import completion_init

    completion_init()
    return True
