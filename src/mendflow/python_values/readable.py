"""Values of Python for people: what a summary shows of them."""

from datetime import timedelta

from mendflow.core.model.values import Value
from mendflow.python_values.tags import TAG, VALUE, is_kind, kind_of


def readable(value: Value) -> Value:
    """The same data without what is only for readers in Python. What is not as it should be stays as it is."""
    if isinstance(value, list):
        return [readable(each) for each in value]
    if not isinstance(value, dict):
        return value
    if not is_kind(value):
        return {key: readable(each) for key, each in value.items()}
    kind, name = kind_of(value)
    content = value.get(VALUE)
    if kind == "enum":
        return f"{name.rpartition('.')[2]}.{value.get('name') or content}"
    if name:
        return {key: readable(each) for key, each in value.items() if key != TAG}
    if kind == "numpy":
        return "an array"
    if (
        kind == "dict"
        and isinstance(content, list)
        and all(isinstance(each, list) and len(each) == 2 for each in content)
    ):
        return {str(readable(key)): readable(each) for key, each in content}
    if kind == "timedelta" and isinstance(content, list) and len(content) == 3:
        return str(timedelta(*content))
    if kind in ("datetime", "time") and "zone" in value:
        return f"{content} {value['zone']}"
    return readable(content)
