"""YAML that is read strictly: no key twice, no unknown key, no value of another kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import yaml

from ..errors import ConfigError

_TRUE, _FALSE = ("true", "yes", "on"), ("false", "no", "off")


class _Loader(yaml.BaseLoader):
    """Leaves every scalar a string, so that a user may be called ``123`` or ``on``."""


def _construct_mapping(loader: _Loader, node: yaml.MappingNode) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            raise ConfigError(f"line {key_node.start_mark.line + 1}: a key is no text", "write one")
        if key in found:
            raise ConfigError(
                f"line {key_node.start_mark.line + 1}: {key!r} is there twice", "remove one"
            )
        found[key] = loader.construct_object(value_node, deep=True)
    return found


_Loader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)


@dataclass(frozen=True)
class Node:
    """A mapping of the file, with the path to it for messages. What is absent is empty."""

    items: Mapping[str, Any]
    path: str = ""

    def allow(self, *keys: str) -> None:
        """Refuse every other key.

        Raises:
            ConfigError: there is one.
        """
        for key in self.items:
            if key not in keys:
                raise ConfigError(f"{self._name(key)} is not known", f"use {', '.join(keys)}")

    def text(self, key: str, default: str = "") -> str:
        """Return a scalar; an empty one is the default.

        Raises:
            ConfigError: it is a list or a mapping.
        """
        value = self.items.get(key) or default
        return value if isinstance(value, str) else self._refuse(key, "a text")

    def flag(self, key: str, default: bool) -> bool:
        """Return a boolean.

        Raises:
            ConfigError: it is something else.
        """
        text = self.text(key).lower()
        if text not in (*_TRUE, *_FALSE, ""):
            self._refuse(key, "true or false")
        return text in _TRUE if text else default

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of scalars.

        Raises:
            ConfigError: it is something else.
        """
        value = self.items.get(key) or []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self._refuse(key, "a list of texts")
        return tuple(value)

    def mapping(self, key: str) -> Node:
        """Return a mapping.

        Raises:
            ConfigError: it is something else.
        """
        value = self.items.get(key) or {}
        return Node(
            value if isinstance(value, dict) else self._refuse(key, "a mapping"), self._name(key)
        )

    def _refuse(self, key: str, wanted: str) -> NoReturn:
        # Without the value: it may be a secret.
        raise ConfigError(f"{self._name(key)} is not {wanted}", f"write {wanted}")

    def _name(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key


def load_mapping(content: bytes) -> Node:
    """Read a document whose outermost value is a mapping, or empty.

    Raises:
        ConfigError: it is no such document.
    """
    try:
        loader = _Loader(content)
        value = loader.get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        raise ConfigError(f"{where}{error.problem or error.context}", "write YAML") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"it is not YAML ({type(error).__name__})", "write YAML") from None
    if value and not isinstance(value, dict):
        raise ConfigError("its outermost value is not a mapping", "write YAML like the example")
    return Node(value or {})
