"""Options that are text reach the command as they were typed.

typer looks each value through with an adapter of pydantic's; for text there is nothing to convert, since our own
parsers read it, and to load pydantic for it takes longer than to parse a whole command line.
"""

from __future__ import annotations

from typing import Any

REPLACED = "process_value"


def take_as_typed(command: Any) -> Any:
    """The typer ``command``, whose single values of text, and those that are not given, are taken as they are.

    All else (paths, lists, what is required and missing) stays typer's. Releases without adapters are left alone.
    """
    listed = command.get_params

    def get_params(context: Any) -> list[Any]:
        # asked for at each parse, since --help is made anew each time
        return [_as_typed(parameter) for parameter in listed(context)]

    command.get_params = get_params
    return command


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
