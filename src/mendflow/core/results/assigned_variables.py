"""Which variables a script has certainly set at each of its commands.

A variable that only some branch sets may be read where that branch was not taken: then its value comes from outside.
So each branch of `if` and `case`, each part of `&&` and `||` and each body of a loop begins with what was set before
it, and afterwards only that is set which all of them set. What a subshell or a part of a pipeline sets is lost."""

from typing import Final, NamedTuple

from mendflow.core.results.shell_reader import Command, Word

_OPENS: Final = {"if": "if", "while": "loop", "until": "loop", "for": "loop", "select": "loop", "case": "case"}
_CLOSES: Final = {"fi": "if", "done": "loop", "esac": "case", "}": "group"}
_ENDS_BRANCH: Final = frozenset({"exit", "break", "continue"})
_ALL_CASES: Final = "*"


class _State(NamedTuple):
    """The variables that are set; `over`: no command runs after this, so it does not matter."""

    known: frozenset[str]
    over: bool = False


def _either(*states: _State) -> _State:
    going_on = [state.known for state in states if not state.over]
    return _State(frozenset.intersection(*going_on)) if going_on else states[0]


class _List:
    """Commands that are joined by `&&` and `||`: what is set if all went well so far, and if not."""

    def __init__(self, before: _State) -> None:
        self.before = before
        self.joined = ""
        self.piped = False
        self.goes_on = False
        """An operator stands at the end, so that a new line does not end the list."""
        self.well = self.badly = before

    def add(self, after: _State) -> None:
        after = self.before if self.piped else after
        if self.joined == "&&":
            self.well, self.badly = after, _either(self.badly, after)
        elif self.joined == "||":
            self.well, self.badly = _either(self.well, after), after
        else:
            self.well = self.badly = after

    def pipe(self) -> _State:
        """What is set where the next part of a pipeline begins."""
        self.piped = self.goes_on = True
        return self.before

    def has_part(self) -> None:
        """What follows the operator has begun."""
        self.goes_on = False

    def join(self, operator: str) -> _State:
        """What is set where the next command begins."""
        self.joined, self.piped, self.goes_on = operator, False, True
        self.before = self.well if operator == "&&" else self.badly
        return self.before


class _Block:
    """A compound command that has begun."""

    def __init__(self, kind: str, around: _List, entry: _State, function: str = "") -> None:
        self.kind = kind
        self.around = around
        self.entry = self.condition = entry
        self.function = function
        self.branches: list[_State] = []
        self.covers_all = False
        self.in_pattern = kind == "case"
        self.only_inside: set[str] = set()


class AssignedVariables:
    """Tell it of each command before it is read, and after: `known` is what is set then, to be added to."""

    def __init__(self, known: frozenset[str]) -> None:
        self.known = set(known)
        self._over = False
        self._list = _List(self._state())
        self._blocks: list[_Block] = []
        self._functions: dict[str, _State] = {}
        self._function = ""
        self._skips = False

    def before(self, command: Command) -> None:
        """The words that begin, part and end compound commands."""
        if not _is_empty(command):
            self._list.has_part()
        for at, word in enumerate(command.words):
            text = word.text
            if text == "function" and at + 1 < len(command.words):
                self._function = command.words[at + 1].text
            elif text == "{" or text in _OPENS:
                self._open(_OPENS.get(text, "group"))
                if text in ("for", "select", "case"):
                    return
            elif text in ("then", "do"):
                self._at_condition()
            elif text in ("elif", "else"):
                self._at_branch(is_last=text == "else")
            elif text in _CLOSES:
                self._close(_CLOSES[text])
            elif text not in ("!", "time") and not (at and command.words[at - 1].text == "function"):
                return

    def after(self, command: Command, following: Command | None) -> None:
        """What the command was itself, and the operator behind it."""
        if self._skips:
            self._skips = False
            return
        program = next((word.text for word in command.words if word.text not in ("then", "do", "else", "{", "!")), "")
        self._over |= program in _ENDS_BRANCH
        if program in self._functions:
            set_there, self._over = self._functions[program].known, self._over or self._functions[program].over
            self.known |= set_there
        is_doubled = following is not None and _is_empty(following) and following.end == command.end
        block = self._blocks[-1] if self._blocks else None
        if block is not None and block.in_pattern:
            self._in_pattern(block, command)
        elif command.end == "(":
            self._at_parenthesis(command.words, following)
        elif command.end == ")":
            self._close("subshell")
        elif command.end and command.end in "&|" and is_doubled:
            self._skips = True
            self._list.add(self._state())
            self._set(self._list.join(command.end * 2))
        elif command.end == "|":
            self._set(self._list.pipe())
        elif not self._list.goes_on:
            self._end_list(is_lost=command.end == "&")
            if block is not None and block.kind == "case" and command.end == ";" and following is not None:
                self._at_case_end(block, following)

    def add_loop_variable(self, name: str, *, is_sure: bool) -> None:
        """`is_sure`: the loop has something to go over."""
        if not is_sure and self._blocks and name not in self.known:
            self._blocks[-1].only_inside.add(name)
        self.known.add(name)

    def _state(self) -> _State:
        return _State(frozenset(self.known), self._over)

    def _set(self, state: _State) -> None:
        self.known, self._over = set(state.known), state.over

    def _end_list(self, *, is_lost: bool) -> None:
        self._list.add(self._list.before if is_lost else self._state())
        self._set(_either(self._list.well, self._list.badly))
        self._list = _List(self._state())

    def _open(self, kind: str) -> None:
        function, self._function = (self._function, "") if kind == "group" else ("", self._function)
        self._list.has_part()
        self._blocks.append(_Block(kind, self._list, self._state(), function))
        self._list = _List(self._state())

    def _at_condition(self) -> None:
        if self._blocks:
            self._blocks[-1].condition = self._state()

    def _at_branch(self, *, is_last: bool) -> None:
        if self._blocks:
            block = self._blocks[-1]
            block.branches.append(self._state())
            block.covers_all |= is_last
            self._set(block.condition)
            self._list = _List(self._state())

    def _close(self, kind: str) -> None:
        if not self._blocks or self._blocks[-1].kind not in (kind, "array" if kind == "subshell" else kind):
            return
        block = self._blocks.pop()
        self._list.add(self._state())
        end = _either(self._list.well, self._list.badly)
        self._list = block.around
        self._set(self._outcome(block, end))

    def _outcome(self, block: _Block, end: _State) -> _State:
        if block.kind == "if":
            return _either(*block.branches, end, *(() if block.covers_all else (block.condition,)))
        if block.kind == "case":
            arms = block.branches if block.in_pattern else [*block.branches, end]
            return _either(*arms, *(() if block.covers_all and arms else (block.entry,)))
        if block.kind == "loop":
            return _State(block.condition.known - block.only_inside)
        if block.function:
            self._functions[block.function] = end
        return block.entry if block.function or block.kind == "subshell" else end

    def _at_parenthesis(self, words: list[Word], following: Command | None) -> None:
        if words and words[-1].text.endswith("="):
            self._open("array")
        elif words and following is not None and _is_empty(following) and following.end == ")":
            self._function, self._skips = words[-1].text, True
        else:
            self._open("subshell")

    def _in_pattern(self, block: _Block, command: Command) -> None:
        if command.end == ")":
            block.in_pattern = False
            block.covers_all |= bool(command.words) and command.words[-1].text == _ALL_CASES
            self._set(block.entry)
            self._list = _List(self._state())

    def _at_case_end(self, block: _Block, following: Command) -> None:
        if _is_empty(following) and following.end in (";", "&"):
            block.branches.append(self._state())
            block.in_pattern = self._skips = True


def _is_empty(command: Command) -> bool:
    return not (command.words or command.redirections or command.documents or command.arithmetic)
