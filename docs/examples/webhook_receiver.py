"""Receive events of LCM and verify their signatures: LCM_SECRET=whsec_… python webhook_receiver.py 9000"""

import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from standardwebhooks import Webhook, WebhookVerificationError


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            event = Webhook(os.environ["LCM_SECRET"]).verify(body, dict(self.headers))
        except WebhookVerificationError:
            self.send_error(401)
            return
        print(self.headers["webhook-id"], event["type"], event["data"]["message"], flush=True)
        self.send_response(204)
        self.end_headers()


HTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
