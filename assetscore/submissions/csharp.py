"""C# sources to class declarations, by the grammar of tree-sitter: what a reader of Terraria mods has to know of them.

Expressions become small tuples that `Expr` lists, so that nothing of a parsed file stays in memory, and evaluating them
runs no code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["ClassDeclaration", "Expr", "declarations"]

Expr: TypeAlias = tuple[Any, ...]
"""("text", str), ("number", int), ("name", "A.B"), ("join", parts), ("either", choices), ("replace", of, old, new),
("member", "Type", "Property") of another class, ("namespace",), ("classname",), or ("unknown",)."""

MAX_BYTES = 4 * 1024 * 1024
MAX_NESTING = 60
UNKNOWN: Expr = ("unknown",)
_TYPES = {"class_declaration", "record_declaration"}
_NAMESPACES = {"namespace_declaration", "file_scoped_namespace_declaration"}
_TRANSPARENT = {
    "declaration_list", "preproc_if", "preproc_else", "preproc_elif", "preproc_ifdef", "struct_declaration", "ERROR",
}  # fmt: skip
_FRAME_WORDS = re.compile(rb"npcFrameCount|projFrames|DrawAnimation|newTile")
"""Methods without one of these say nothing about frames, and are not gone through."""
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


@dataclass
class ClassDeclaration:
    """One class, or one part of a partial class.

    Attributes:
        name: without type parameters.
        namespace: dotted; empty at the top.
        bases: names as written, without type arguments, dotted where they are.
        modifiers: "abstract", "partial" ...
        generic: has it type parameters?
        attributes: name to the arguments' dotted names ("EquipType.Head").
        properties: what properties without a body of several statements return, by name.
        constants: const and static fields with a value, by name.
        assignments: right-hand sides by the left-hand side's dotted name without its subscript ("Main.npcFrameCount"),
            of methods that speak of frames.
        calls: arguments of constructors by dotted name ("DrawAnimationVertical"), of the same methods.
        usings: namespaces that the file imports.
        outer: the class that this one is nested in, by full name.
    """

    name: str
    namespace: str
    bases: tuple[str, ...] = ()
    modifiers: frozenset[str] = frozenset()
    generic: bool = False
    attributes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    properties: dict[str, Expr] = field(default_factory=dict)
    constants: dict[str, Expr] = field(default_factory=dict)
    assignments: dict[str, Expr] = field(default_factory=dict)
    calls: dict[str, tuple[Expr, ...]] = field(default_factory=dict)
    usings: tuple[str, ...] = ()
    outer: str = ""

    @property
    def full_name(self) -> str:
        return f"{self.namespace}.{self.name}" if self.namespace else self.name


def declarations(source: bytes) -> list[ClassDeclaration]:
    """The classes of a C# file; nested ones are in the namespace of the file, as the game sees them.

    Damaged code gives what can be told from the rest; files of more than 4 MiB give nothing.

    >>> [found] = declarations(b'namespace M.Items; class Ruby : ModItem { public override string Texture => "M/R"; }')
    >>> found.full_name, found.bases, found.properties["Texture"]
    ('M.Items.Ruby', ('ModItem',), ('text', 'M/R'))
    """
    if len(source) > MAX_BYTES:
        return []
    import tree_sitter_c_sharp
    from tree_sitter import Language, Parser

    if source.startswith(b"\xef\xbb\xbf"):
        source = source[3:]
    tree = Parser(Language(tree_sitter_c_sharp.language())).parse(source)
    return list(_walk(tree.root_node, "", (), "", 0))


def _walk(parent: Node, namespace: str, usings: tuple[str, ...], outer: str, depth: int) -> Iterator[ClassDeclaration]:
    if depth > MAX_NESTING:
        return
    usings = usings + tuple(_dotted(node.named_children[-1]) for node in parent.children if _plain_using(node))
    for node in parent.children:
        if node.type in _NAMESPACES:
            name = _dotted(node.child_by_field_name("name"))
            inner = f"{namespace}.{name}" if namespace else name
            if node.type == "file_scoped_namespace_declaration":
                namespace = inner  # holds for everything behind it
                usings = usings + tuple(_dotted(n.named_children[-1]) for n in node.children if _plain_using(n))
            body = node.child_by_field_name("body")
            if body is not None:
                yield from _walk(body, inner, usings, "", depth + 1)
        elif node.type in _TYPES:
            found = _class(node, namespace, usings, outer)
            yield found
            body = node.child_by_field_name("body")
            if body is not None:
                yield from _walk(body, namespace, usings, found.full_name, depth + 1)
        elif node.type in _TRANSPARENT:
            yield from _walk(node, namespace, usings, outer, depth + 1)


def _plain_using(node: Node) -> bool:
    return node.type == "using_directive" and bool(node.named_children) and node.child_by_field_name("name") is None


def _class(node: Node, namespace: str, usings: tuple[str, ...], outer: str) -> ClassDeclaration:
    found = ClassDeclaration(_text(node.child_by_field_name("name")), namespace, usings=usings, outer=outer)
    modifiers = set()
    for child in node.children:
        if child.type == "modifier":
            modifiers.add(_text(child))
        elif child.type == "type_parameter_list":
            found.generic = True
        elif child.type == "base_list":
            found.bases = tuple(_dotted(base) for base in child.named_children)
        elif child.type == "attribute_list":
            for attribute in child.named_children:
                if attribute.type == "attribute":
                    name = _dotted(attribute.child_by_field_name("name")).rpartition(".")[2].removesuffix("Attribute")
                    lists = [child for child in attribute.named_children if child.type == "attribute_argument_list"]
                    found.attributes[name] = tuple(_text(a) for each in lists for a in each.named_children)
    found.modifiers = frozenset(modifiers)
    body = node.child_by_field_name("body")
    if body is not None:
        _members(body, found)
    return found


def _members(body: Node, found: ClassDeclaration) -> None:
    """Fill in what the body declares, without going into nested types."""
    pending = list(reversed(body.named_children))
    while pending:
        node = pending.pop()
        if node.type == "property_declaration":
            found.properties[_text(node.child_by_field_name("name"))] = _property(node)
        elif node.type == "field_declaration":
            _constants(node, found)
        elif node.type in _TRANSPARENT:
            pending.extend(reversed(node.named_children))
        elif node.type not in _TYPES and _FRAME_WORDS.search(node.text or b""):
            _statements(node, found)


def _statements(method: Node, found: ClassDeclaration) -> None:
    """The assignments and calls in a method that could be about frames."""
    pending = [method]
    while pending:
        node = pending.pop()
        if node.type == "assignment_expression":
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            if left is not None and right is not None:
                if left.type == "element_access_expression":
                    left = left.child_by_field_name("expression")
                found.assignments.setdefault(_dotted(left), _expression(right))
        elif node.type == "object_creation_expression":
            called, arguments = node.child_by_field_name("type"), node.child_by_field_name("arguments")
            if called is not None and arguments is not None:
                values = tuple(_expression(a.named_children[-1]) for a in arguments.named_children if a.named_children)
                found.calls.setdefault(_dotted(called), values)
        pending.extend(reversed(node.named_children))


def _constants(node: Node, found: ClassDeclaration) -> None:
    if not {_text(child) for child in node.children if child.type == "modifier"} & {"const", "static", "readonly"}:
        return
    for declaration in node.named_children:
        for variable in declaration.named_children if declaration.type == "variable_declaration" else ():
            if variable.type == "variable_declarator" and len(variable.named_children) > 1:
                name = variable.child_by_field_name("name")
                found.constants[_text(name)] = _expression(variable.named_children[-1])


def _property(node: Node) -> Expr:
    """What a property returns: behind its arrow, by its only return statement, or as its initial value."""
    value = node.child_by_field_name("value")
    if value is not None:
        return _expression(value)
    pending, returned = [node], []
    while pending:
        inner = pending.pop()
        if inner.type in ("arrow_expression_clause", "return_statement") and inner.named_children:
            returned.append(_expression(inner.named_children[0]))
        elif inner.type not in ("lambda_expression", "local_function_statement"):
            pending.extend(reversed(inner.named_children))
    if not returned:
        return UNKNOWN
    return returned[0] if len(returned) == 1 else ("either", tuple(returned))


def _expression(node: Node, depth: int = 0) -> Expr:
    if depth > MAX_NESTING:
        return UNKNOWN
    kind, inner = node.type, node.named_children
    if kind in ("string_literal", "raw_string_literal", "character_literal"):
        return ("text", "".join(_piece(child) for child in inner))
    if kind == "verbatim_string_literal":
        return ("text", _text(node)[2:-1].replace('""', '"'))
    if kind == "integer_literal":
        digits = _text(node).replace("_", "").rstrip("uUlL")
        return ("number", int(digits)) if digits.isdecimal() and len(digits) < 10 else UNKNOWN
    if kind in ("parenthesized_expression", "arrow_expression_clause", "cast_expression") and inner:
        return _expression(inner[-1], depth + 1)
    if kind == "interpolated_string_expression":
        pieces = [c for c in inner if c.type in ("interpolation", "string_content", "escape_sequence")]
        return ("join", tuple(_interpolated(piece, depth) for piece in pieces))
    if kind == "binary_expression" and _text(node.child_by_field_name("operator")) == "+":
        return ("join", tuple(_expression(side, depth + 1) for side in inner if side.type != "comment"))
    if kind == "conditional_expression" and len(inner) == 3:
        return ("either", tuple(_expression(choice, depth + 1) for choice in inner[1:]))
    if kind == "switch_expression":
        arms = [arm.named_children[-1] for arm in inner if arm.type == "switch_expression_arm" and arm.named_children]
        return ("either", tuple(_expression(arm, depth + 1) for arm in arms))
    if kind == "invocation_expression":
        return _call(node, depth)
    if kind == "member_access_expression":
        return _member(node)
    if kind in ("identifier", "qualified_name"):
        return ("name", _dotted(node))
    return UNKNOWN


def _interpolated(piece: Node, depth: int) -> Expr:
    if piece.type != "interpolation":
        return ("text", _piece(piece))
    inner = [child for child in piece.named_children if child.type not in ("interpolation_brace", "comment")]
    return _expression(inner[0], depth + 1) if len(inner) == 1 else UNKNOWN


def _call(node: Node, depth: int) -> Expr:
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or arguments is None:
        return UNKNOWN
    values = [argument.named_children[-1] for argument in arguments.named_children if argument.named_children]
    name = _dotted(function)
    if name == "nameof" and values:
        return ("text", _dotted(values[0]).rpartition(".")[2])
    if name in ("string.Concat", "String.Concat", "Path.Combine"):
        parts = [_expression(value, depth + 1) for value in values]
        between: list[Expr] = [("text", "/")] if name == "Path.Combine" else []
        return ("join", tuple(e for i, part in enumerate(parts) for e in ([*between, part] if i else [part])))
    method, target = name.rpartition(".")[2], function.child_by_field_name("expression")
    if target is None:
        return UNKNOWN
    if method == "Replace" and len(values) == 2:
        return ("replace", *(_expression(part, depth + 1) for part in (target, *values)))
    return _expression(target, depth + 1) if method == "ToString" and not values else UNKNOWN


def _member(node: Node) -> Expr:
    target, name = node.child_by_field_name("expression"), _text(node.child_by_field_name("name"))
    if target is None:
        return UNKNOWN
    if target.type == "typeof_expression" and name == "Name":
        return ("text", _dotted(target.child_by_field_name("type")).rpartition(".")[2])
    if target.type == "invocation_expression":
        called = target.child_by_field_name("function")
        if called is not None and _dotted(called).rpartition(".")[2] == "GetType":
            return {"Namespace": ("namespace",), "Name": ("classname",)}.get(name, UNKNOWN)
        generic = called.child_by_field_name("name") if called is not None else None
        if generic is not None and generic.type == "generic_name" and _text(generic).startswith("GetInstance"):
            types = [t for c in generic.named_children if c.type == "type_argument_list" for t in c.named_children]
            return ("member", _dotted(types[0]), name) if types else UNKNOWN
        return UNKNOWN
    return ("name", _dotted(node))


def _piece(node: Node) -> str:
    text = _text(node)
    if node.type.endswith("_content"):
        return text
    if node.type != "escape_sequence":
        return ""
    if text[1:2] in "uUx" and len(text) > 2:
        try:
            return chr(int(text[2:], 16))
        except (ValueError, OverflowError):
            return ""
    return _ESCAPES.get(text[1:], text[1:])


def _dotted(node: Node | None) -> str:
    """A name with its dots, without type arguments and without "global::"."""
    parts: list[str] = []
    while node is not None:
        if node.type in ("qualified_name", "member_access_expression", "alias_qualified_name"):
            parts.append(_dotted(node.child_by_field_name("name")))
            node = node.child_by_field_name("qualifier") or node.child_by_field_name("expression")
        elif node.type in ("generic_name", "primary_constructor_base_type"):
            parts.append(_text(node.named_children[0]) if node.named_children else "")
            break
        else:
            parts.append(_text(node) if not node.named_children else "?")
            break
    return ".".join(reversed(parts))


def _text(node: Node | None) -> str:
    return "" if node is None or node.text is None else node.text.decode("utf-8", "replace")
