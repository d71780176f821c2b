"""Which textures a Terraria mod's classes ask for: kinds through base classes, paths through `Texture`, frame counts.

A class derived from ModItem, ModProjectile ... takes <namespace as path>/<ClassName> unless it, or a class between,
overrides `Texture`. Overrides are evaluated over constants, `Name`, `nameof`, `+` and interpolation; no code is run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from .csharp import ClassDeclaration, Expr
from .terraria_paths import EQUIP_SUFFIXES

__all__ = ["KINDS", "Registered", "registered"]

KINDS = {
    "ModItem": "item", "ModProjectile": "projectile", "ModTile": "tile", "ModPylon": "tile", "ModWall": "wall",
    "ModNPC": "npc", "ModBuff": "buff", "ModDust": "dust", "ModGore": "gore", "ModMount": "other", "ModCloud": "other",
    "ModEmoteBubble": "other", "ModCactus": "other", "ModTree": "other", "ModPalmTree": "other",
}  # fmt: skip
"""The loader's own bases that have a texture, and the category of what derives from them."""
WITHOUT_DEFAULT = frozenset({"ModCactus", "ModTree", "ModPalmTree"})
"""Bases whose texture is no path by name."""
FRAME_COUNTS = {"item": "DrawAnimationVertical", "projectile": "Main.projFrames", "npc": "Main.npcFrameCount"}
MAX_STEPS = 64
MAX_TEXT = 1024


@dataclass(frozen=True)
class Registered:
    """What one class registers.

    Attributes:
        name: of the class, with its namespace.
        category: item, projectile, tile ...
        texture: the path that it asks for, without an extension; None where it could not be evaluated.
        vanilla: is that one of the game's own textures?
        suffixes: of the further sheets that it needs ("Head" for a helmet).
        frames: how many frames its sheet has, where it says so.
        cell: (width, height, padding) of a tile's cells, where it says so.
    """

    name: str
    category: str
    texture: str | None
    vanilla: bool = False
    suffixes: tuple[str, ...] = ()
    frames: int | None = None
    cell: tuple[int, int, int] | None = None


def registered(classes: Iterable[ClassDeclaration]) -> tuple[str, list[Registered]]:
    """The mod's internal name (the first part of most namespaces), and what each concrete class registers, by name."""
    project = _Project(classes)
    found = []
    for each in project.classes.values():
        kind, line = project.lineage(each)
        if kind is None or each.generic or "abstract" in each.modifiers:
            continue
        if any("false" in part.attributes.get("Autoload", ()) for part in line[:1]):
            continue
        found.append(_register(project, kind, line))
    return project.mod, sorted(found, key=lambda entry: entry.name)


def _register(project: _Project, kind: str, line: Sequence[ClassDeclaration]) -> Registered:
    own = line[0]
    texture, complete = _Evaluation(project, line).property("Texture", 0)
    if kind in WITHOUT_DEFAULT and not any("Texture" in part.properties for part in line):
        texture, complete = "", False
    vanilla = texture.startswith(("Terraria/", "Terraria\\"))
    suffixes = []
    for part in line:
        suffixes += [a.rpartition(".")[2] for a in part.attributes.get("AutoloadEquip", ())]
        if kind == "ModNPC" and "AutoloadBossHead" in part.attributes:
            suffixes.append("Head_Boss")
        if kind == "ModNPC" and "AutoloadHead" in part.attributes:
            suffixes.append("Head")
    known = tuple(dict.fromkeys(s for s in suffixes if s in EQUIP_SUFFIXES or s == "Head_Boss"))
    category = KINDS[kind]
    return Registered(
        own.full_name,
        category,
        texture.replace("\\", "/") if complete or vanilla else None,
        vanilla,
        known,
        _frames(project, category, line),
        _cell(line) if category == "tile" else None,
    )


def _frames(project: _Project, category: str, line: Sequence[ClassDeclaration]) -> int | None:
    """The count that the class, or the nearest base that has one, assigns."""
    wanted = FRAME_COUNTS.get(category)
    for level, part in enumerate(line):
        value: Expr | None = None
        if category == "item":
            arguments = next((a for name, a in part.calls.items() if name.rpartition(".")[2] == wanted), ())
            value = arguments[1] if len(arguments) > 1 else None
        elif wanted is not None:
            value = part.assignments.get(f"Terraria.{wanted}", part.assignments.get(wanted))
        if value is not None:
            number = _Evaluation(project, line).number(value, level)
            return number if number is not None and number > 0 else None
    return None


def _cell(line: Sequence[ClassDeclaration]) -> tuple[int, int, int] | None:
    def value(name: str, default: int) -> int:
        for part in line:
            kind, *rest = part.assignments.get(f"TileObjectData.newTile.{name}", ("unknown",))
            if kind == "number" and 0 < rest[0] <= 256:
                return int(rest[0])
        return default

    width, padding = value("CoordinateWidth", 16), value("CoordinatePadding", 2)
    return None if (width, padding) == (16, 2) else (width, width, padding)


class _Project:
    """All classes of a mod, by full name, parts of partial classes joined."""

    def __init__(self, classes: Iterable[ClassDeclaration]) -> None:
        self.classes: dict[str, ClassDeclaration] = {}
        for each in classes:
            known = self.classes.get(each.full_name)
            self.classes[each.full_name] = each if known is None else _joined(known, each)
        self.by_name: dict[str, list[str]] = {}
        for full_name, each in self.classes.items():
            self.by_name.setdefault(each.name, []).append(full_name)
        firsts = Counter(each.namespace.partition(".")[0] for each in self.classes.values() if each.namespace)
        self.mod = min(firsts, key=lambda name: (-firsts[name], name)) if firsts else ""

    def find(self, name: str, seen_from: ClassDeclaration) -> ClassDeclaration | None:
        """The class that a name written in another means: by the namespaces around it, imports, and last if unique."""
        scope = seen_from.namespace
        while True:
            found = self.classes.get(f"{scope}.{name}" if scope else name)
            if found is not None:
                return found
            if not scope:
                break
            scope = scope.rpartition(".")[0]
        for using in seen_from.usings:
            found = self.classes.get(f"{using}.{name}")
            if found is not None:
                return found
        if name.rpartition(".")[2] in KINDS:
            return None
        alike = self.by_name.get(name.rpartition(".")[2], [])
        return self.classes[alike[0]] if len(alike) == 1 else None

    def lineage(self, each: ClassDeclaration) -> tuple[str | None, list[ClassDeclaration]]:
        """The loader's base that a class comes from, and the mod's classes down to it, the class itself first."""
        line = [each]
        names = {each.full_name}
        while len(line) < MAX_STEPS:
            following = None
            for base in line[-1].bases:
                following = self.find(base, line[-1])
                if following is not None:
                    break
                if base.rpartition(".")[2] in KINDS:
                    return base.rpartition(".")[2], line
            if following is None or following.full_name in names:
                return None, line
            names.add(following.full_name)
            line.append(following)
        return None, line


class _Evaluation:
    """Evaluates expressions as the class `line[0]` sees them, to (text, is it complete?); a known beginning counts."""

    def __init__(
        self, project: _Project, line: Sequence[ClassDeclaration], depth: int = 0, steps: list[int] | None = None
    ) -> None:
        self.project, self.line, self.depth = project, line, depth
        self.steps = [0] if steps is None else steps  # shared by what is evaluated in other classes on the way

    def property(self, name: str, level: int) -> tuple[str, bool]:
        """A property or constant as the class at `level` of the line and its bases declare it."""
        for at in range(level, len(self.line)):
            part = self.line[at]
            value = part.properties.get(name) or part.constants.get(name)
            if value is not None:
                return self.text(value, at)
        own = self.line[0]
        if name == "Name":
            return own.name, True
        if name == "Texture":
            given, complete = self.property("Name", 0)
            return f"{own.namespace}.{given}".replace(".", "/").lstrip("/"), complete
        imported = (self.project.classes.get(using) for using in own.usings)  # "using static"
        for other in (*self._outer(own), *filter(None, imported)):
            value = other.constants.get(name) or other.properties.get(name)
            if value is not None:
                return self._in(other).text(value, 0)
        return "", False

    def text(self, value: Expr, level: int) -> tuple[str, bool]:
        self.steps[0] += 1
        if self.depth >= MAX_STEPS or self.steps[0] > MAX_TEXT:
            return "", False  # a property that goes back to itself
        self.depth += 1
        result = self._text(value, level)
        self.depth -= 1
        return result

    def _text(self, value: Expr, level: int) -> tuple[str, bool]:
        kind, *rest = value
        if kind in ("text", "number"):
            return str(rest[0]), True
        if kind == "join":
            joined = ""
            for part in rest[0]:
                piece, complete = self.text(part, level)
                joined += piece
                if not complete or len(joined) > MAX_TEXT:
                    return joined, False
            return joined, True
        if kind == "either":
            results = [self.text(choice, level) for choice in rest[0]]
            return next((result for result in results if result[1]), results[0] if results else ("", False))
        if kind == "replace":
            (of, known), (old, _), (new, _) = (self.text(part, level) for part in rest)
            return (of.replace(old, new) if old and len(of) * (len(new) + 1) <= 10 * MAX_TEXT else of), known
        if kind == "namespace":
            return self.line[0].namespace, True
        if kind == "classname":
            return self.line[0].name, True
        if kind == "member":
            return self._of_class(rest[0], rest[1])
        return self._name(rest[0], level) if kind == "name" else ("", False)

    def number(self, value: Expr, level: int) -> int | None:
        text, complete = self.text(value, level)
        return int(text) if complete and text.isascii() and text.isdecimal() and len(text) < 10 else None

    def _name(self, name: str, level: int) -> tuple[str, bool]:
        if name in ("Mod.Name", "this.Mod.Name"):
            return self.project.mod, True
        if name.startswith("base."):
            return self.property(name[5:], level + 1)
        name = name.removeprefix("this.")
        if "." not in name:
            return self.property(name, 0)
        owner, _, member = name.rpartition(".")
        return self._of_class(owner, member)

    def _of_class(self, owner: str, member: str) -> tuple[str, bool]:
        found = self.project.find(owner, self.line[0])
        return ("", False) if found is None else self._in(found).property(member, 0)

    def _in(self, other: ClassDeclaration) -> _Evaluation:
        """The same evaluation continued in another class; steps are counted together."""
        return _Evaluation(self.project, self.project.lineage(other)[1], self.depth, self.steps)

    def _outer(self, each: ClassDeclaration) -> Iterator[ClassDeclaration]:
        for _ in range(MAX_STEPS):
            following = self.project.classes.get(each.outer)
            if following is None:
                return
            yield following
            each = following


def _joined(first: ClassDeclaration, second: ClassDeclaration) -> ClassDeclaration:
    return replace(
        first,
        bases=(*first.bases, *second.bases),
        modifiers=first.modifiers | second.modifiers,
        generic=first.generic or second.generic,
        attributes={**second.attributes, **first.attributes},
        properties={**second.properties, **first.properties},
        constants={**second.constants, **first.constants},
        assignments={**second.assignments, **first.assignments},
        calls={**second.calls, **first.calls},
        usings=(*first.usings, *second.usings),
    )
