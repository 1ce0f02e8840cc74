"""A small site whose pages answer questions: it serves the modules and keeps what devices send."""

import contextlib
import http.server
import threading

from discreet.local.browser import MODULES, read_module

# As strict as a site can be: nothing but its own files, no code out of texts.
POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; require-trusted-types-for 'script'"
)
PAGE = b"""<!doctype html><meta charset=utf-8><title>device</title>
<script type=module src=/page.js></script>"""
SCRIPT = """
import * as local from "/{module}";
window.local = local;
"""


class DeviceSite:
    """Where the site is, the documents it serves by their paths, and the bodies it was sent."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.files: dict[str, tuple[str, bytes]] = {"/": ("text/html", PAGE)}
        self.bodies: list[bytes] = []

    def use(self, module: str) -> None:
        """Serve a page that has a module's exports as ``window.local``."""
        self.files["/page.js"] = ("text/javascript", SCRIPT.format(module=module).encode())


@contextlib.contextmanager
def device_site():
    """Serve on a port of this machine, which browsers take for a secure place."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.site = site = DeviceSite(f"http://127.0.0.1:{server.server_port}")
    for name in MODULES:
        site.files[f"/{name}"] = ("text/javascript", read_module(name))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path = self.path.partition("?")[0]
        kind, body = self.server.site.files.get(path, ("text/plain", b""))
        self.send_response(200 if path in self.server.site.files else 204)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.site.bodies.append(body)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass
