"""Tokens that an independent OpenID provider hands out over its own protocol."""

import json
import re
from http.client import HTTPConnection
from urllib.parse import parse_qs, urlencode, urlsplit

__all__ = ["id_token", "put_claims"]


def post(port, path, form):
    """Post a form to the provider; return its answer, and the text of it."""
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    return _asked(port, "POST", path, urlencode(form), kind)


def _asked(port, method, path, body, headers):
    connection = HTTPConnection("localhost", port, timeout=30)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer, text


def put_claims(port, sub, claims):
    """Let the provider say more about somebody."""
    body = json.dumps(claims)
    answer, told = _asked(port, "PUT", f"/users/{sub}", body, {"Content-Type": "application/json"})
    assert answer.status < 300, told


def id_token(port, audience, sub):
    """Log somebody in, and return the token."""
    asked = {
        "client_id": audience,
        "redirect_uri": "https://app.example/back",
        "response_type": "code",
        "scope": "openid email",
    }
    answer, _ = post(port, f"/oauth2/authorize?{urlencode(asked)}", {"sub": sub})
    code = parse_qs(urlsplit(answer.headers["Location"]).query)["code"][0]
    form = {"grant_type": "authorization_code", "code": code, "client_secret": "x"}
    _, body = post(port, "/oauth2/token", asked | form)
    return re.search(r'"id_token": *"([^"]+)"', body)[1]
