"""Options that are text reach the command as they were typed, and one that has a single value is typed once.

typer looks each value through with an adapter of pydantic's; for text there is nothing to convert, since our own
parsers read it, and to load pydantic for it takes longer than to parse a whole command line. Of an option that is given
twice it takes the last value and says nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..errors import InputError

REPLACED = "process_value"


def take_as_typed(command: Any) -> Any:
    """The typer ``command``, whose single values of text, and those that are not given, are taken as they are.

    All else (paths, lists, what is required and missing) stays typer's. Releases without adapters are left alone. An
    option given twice that has one value is refused in all of them, and so in the commands of a group.
    """
    for each in getattr(command, "commands", {}).values():
        take_as_typed(each)
    _refuse_twice(command)
    listed = command.get_params

    def get_params(context: Any) -> list[Any]:
        # asked for at each parse, since --help is made anew each time
        return [_as_typed(parameter) for parameter in listed(context)]

    command.get_params = get_params
    return command


def _refuse_twice(command: Any) -> None:
    """Have ``command`` raise InputError where an option that has one value is given more than once."""
    made = command.make_parser

    def make_parser(context: Any) -> Any:
        parser = made(context)
        parse = parser.parse_args

        def parse_args(args: list[str]) -> Any:
            values, left, order = parse(args=args)
            asks_for_help = any(getattr(each, "is_eager", False) for each in order)
            if not (context.resilient_parsing or asks_for_help):  # completion looks at a line that is not finished
                _check_once(order)
            return values, left, order

        parser.parse_args = parse_args
        return parser

    command.make_parser = make_parser


def _check_once(order: list[Any]) -> None:
    """``order``: the parameters of a command line, each as often as it stands there."""
    for parameter, count in Counter(order).items():
        if count > 1 and not getattr(parameter, "multiple", True):
            names = "/".join(max(each, key=len) for each in (parameter.opts, parameter.secondary_opts) if each)
            raise InputError(f"{names} is given {'twice' if count == 2 else f'{count} times'}", parameter.help)


def _as_typed(parameter: Any) -> Any:
    descriptor = getattr(parameter, "type_descriptor", None)
    if descriptor is None or REPLACED in vars(parameter) or parameter.nargs != 1 or parameter.multiple:
        return parameter
    checked, is_text = parameter.process_value, descriptor.annotation is str

    def process_value(context: Any, value: Any) -> Any:
        as_it_is = (value is None and not parameter.required) or (is_text and isinstance(value, str))
        if not as_it_is:
            return checked(context, value)
        return parameter.callback(context, parameter, value) if parameter.callback else value

    setattr(parameter, REPLACED, process_value)
    return parameter
