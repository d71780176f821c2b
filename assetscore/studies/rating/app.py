"""The pages: a name, then one texture after the other, then thanks. Works without scripts; keys are an addition."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...errors import MissingExtraError, UsageError
from ..pictures import Picture
from ..votes import ANSWERS, QUESTIONS
from .store import Rater, Store
from .study import LARGE, SHORT, Item, Study

if TYPE_CHECKING:
    from flask import Flask
    from werkzeug.wrappers import Response

__all__ = ["create_app", "serve"]

logger = logging.getLogger(__name__)
PANEL_SIDE = 128
"""Pixels. Larger pictures of the panel are reduced to this, smoothly."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}


def create_app(study: Study, store: Store, *, local: bool = True) -> Flask:
    """The web application of one study.

    Args:
        study: what is shown.
        store: where answers go.
        local: answer only to the names of this machine, so that no other web page can reach in.

    Raises:
        MissingExtraError: Flask is not installed; the message says how to install it.
    """
    flask = _flask()
    app: Flask = flask.Flask(__name__)
    app.config.update(
        SECRET_KEY=store.secret,
        # a browser sends one host's cookies to all of its ports: two studies must not share a name
        SESSION_COOKIE_NAME=f"assetscore_study_{store.token('cookie')}",
        SESSION_COOKIE_SAMESITE="Lax",
        MAX_CONTENT_LENGTH=16 * 1024,
        MAX_FORM_PARTS=20,
        SEND_FILE_MAX_AGE_DEFAULT=300,
        TRUSTED_HOSTS=["localhost", "127.0.0.1", "[::1]"] if local else None,
    )
    items = {store.token("item", asset_id): item for asset_id, item in study.items.items()}
    tokens = {item.asset_id: token for token, item in items.items()}
    panels = {
        art: {store.token("reference", art, str(i)): picture for i, picture in enumerate(panel)}
        for art, panel in study.panels.items()
    }
    references = {token: picture for panel in panels.values() for token, picture in panel.items()}

    def rater() -> Rater | None:
        number = flask.session.get("rater")
        return store.rater_by_id(number) if isinstance(number, int) else None

    def form_of(who: Rater, item: Item) -> str:
        """Whose form on which texture it is: one that another rater left open must not speak for this one."""
        return store.token("form", str(who.id), item.asset_id)

    def welcome(message: str, name: str = "") -> str:
        text: str = flask.render_template("start.html", total=len(items), message=message, name=name)
        return text

    def page(who: Rater, order: list[str], item: Item, message: str = "", chosen: dict[str, str] | None = None) -> str:
        answered = store.answered(who)
        place = order.index(item.asset_id)
        factor = study.panel_factor(item.art)
        text: str = flask.render_template(
            "rate.html",
            rater=who,
            item=item,
            token=tokens[item.asset_id],
            form=form_of(who, item),
            sides=item.picture.sides(item.picture.factor(LARGE)),
            short=[(media, item.picture.sides(item.picture.factor(side))) for media, side in SHORT.items()],
            small=item.picture.sides(factor),
            panel=[(token, picture.sides(factor)) for token, picture in panels[item.art].items()],
            panel_side=PANEL_SIDE,
            questions=QUESTIONS,
            answers=ANSWERS,
            chosen=chosen or {},
            message=message,
            again=item.asset_id in answered,
            done=sum(asset in answered for asset in order),
            total=len(order),
            back=tokens[order[place - 1]] if place and order[place - 1] in answered else None,
        )
        return text

    @app.get("/")
    def start() -> Any:
        if rater():
            return flask.redirect("/rate")
        return welcome("")

    @app.post("/start")
    def name() -> Any:
        typed = flask.request.form.get("name", "")
        try:
            who = store.rater(typed)
        except UsageError as error:
            return welcome(str(error), typed), 400
        flask.session.clear()
        flask.session["rater"] = who.id
        return flask.redirect("/rate", 303)

    @app.get("/rate")
    def show() -> Any:
        who = rater()
        if who is None:
            return flask.redirect("/")
        order = store.order(who, study.items)
        answered = store.answered(who)
        left = [asset for asset in order if asset not in answered]
        asked = flask.request.args.get("item")
        if asked is not None:
            item = items.get(asked)
            if item is None or item.asset_id not in answered.union(left[:1]):
                return flask.redirect("/rate")
            last = flask.session.get("last", {})  # this browser's own last answers: no one else's are ever shown
            return page(who, order, item, chosen=last.get("answers") if last.get("item") == asked else None)
        if not left:
            return flask.render_template("done.html", rater=who, total=len(order), back=tokens[order[-1]])
        # each texture has an address of its own, so that the browser's Back goes to the one before
        return flask.redirect(flask.url_for("show", item=tokens[left[0]]))

    @app.post("/rate")
    def rate() -> Any:
        who = rater()
        if who is None:
            return welcome(
                "Nobody was taking part here any more, so that answer was not kept. Please type your name."
            ), 409
        form = flask.request.form
        item = items.get(form.get("item", ""))
        if item is None or not hmac.compare_digest(form.get("form", "").encode(), form_of(who, item).encode()):
            return flask.render_template("stale.html", rater=who), 409
        given = {question: form.get(question, "") for question in QUESTIONS}
        given = {question: answer for question, answer in given.items() if answer in ANSWERS}
        if len(given) < len(QUESTIONS):
            order = store.order(who, study.items)
            return page(who, order, item, "Please answer both questions; unsure is an answer too.", given), 400
        store.record(who, item.asset_id, given)
        flask.session["last"] = {"item": tokens[item.asset_id], "answers": given}
        return flask.redirect("/rate", 303)

    @app.post("/leave")
    def leave() -> Any:
        flask.session.clear()
        return flask.redirect("/", 303)

    @app.get("/texture/<token>.png")
    def texture(token: str) -> Any:
        return png(items[token].picture if token in items else None)

    @app.get("/reference/<token>.png")
    def reference(token: str) -> Any:
        return png(references.get(token))

    def png(picture: Picture | None) -> Any:
        if picture is None:
            return flask.abort(404)
        response = flask.Response(picture.png, mimetype="image/png")
        response.headers["Cache-Control"] = "private, max-age=3600"
        return response

    @app.before_request
    def same_site() -> Any:
        origin = flask.request.headers.get("Origin")
        if flask.request.method == "POST" and origin not in (None, flask.request.host_url.rstrip("/")):
            return flask.render_template("foreign.html", here=flask.request.host_url), 403
        return None

    @app.after_request
    def headers(response: Response) -> Response:
        response.headers.update(_HEADERS)
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    return app


def serve(
    study: Study,
    store: Store,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    threads: int = 8,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve a study until interrupted.

    Args:
        study, store: what is shown, and where answers go.
        host: the address to listen on. The default is reached from this machine only; any other lets everyone who can
            reach it take part, under any name.
        port: the port; 0 takes a free one.
        threads: requests answered at once.
        ready: called with the page's address once it can be opened.

    Raises:
        MissingExtraError: Flask or waitress is not installed.
        UsageError: the address cannot be listened on.
    """
    app = create_app(study, store, local=host in LOOPBACK)
    try:
        import waitress
    except ImportError as error:
        raise MissingExtraError(_MISSING.format("waitress")) from error
    try:
        server = waitress.create_server(app, host=host, port=port, threads=threads, ident=None)
    except OSError as error:
        raise UsageError(f"cannot listen on {host} port {port}: {error.strerror or error}") from error
    if host not in LOOPBACK:
        logger.warning("everyone who can reach %s can take part in this study", host)
    shown = f"[{host}]" if ":" in host else host
    if ready is not None:
        ready(f"http://{shown}:{server.effective_port}")
    try:
        server.run()
    finally:
        server.close()


_MISSING = 'the rating page needs {}: pip install "assetscore[study]"'


def _flask() -> Any:
    try:
        import flask
    except ImportError as error:
        raise MissingExtraError(_MISSING.format("flask")) from error
    return flask
