"""Serves the gateway of `backends/modal/gateway` as Modal would, with the real `modal` package, until its standard input ends.

Argument: the address of the control plane in a small cloud. The first line of standard input has the key of the cloud and the proxy token
as JSON. Prints one line of JSON with its address and that of Modal's control plane.
"""

import asyncio
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
GATEWAY = os.path.join(HERE, "../../../../backends/modal/gateway")
CREDENTIALS = ("ak-test", "as-test")
MISSING = b"modal-http: missing credentials for proxy authorization"
WRONG = b"modal-http: incorrect credentials for proxy authorization"


def behind_proxy(app, servicer):
    """Plays Modal's proxy authorization."""

    async def guarded(scope, receive, send):
        if scope["type"] != "http":
            return await app(scope, receive, send)
        headers = dict(scope["headers"])
        given = tuple((headers.get(name) or b"").decode() for name in (b"modal-key", b"modal-secret"))
        if given in {(token_id, secret) for token_id, (_, secret) in servicer.tokens.items()}:
            return await app(scope, receive, send)
        await send({"type": "http.response.start", "status": 401, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": MISSING if "" in given else WRONG})

    return guarded


async def main(control_plane):
    import aiohttp
    import uvicorn
    from grpclib.server import Server
    from servicer import Servicer
    from small_cloud import SmallCloud

    given = json.loads(sys.stdin.readline())
    key, secret = given["key"], given["secret"]
    async with aiohttp.ClientSession() as session:
        servicer = Servicer(SmallCloud(control_plane, given["controlKey"], session), CREDENTIALS)
        servicer.tokens[key] = ("of the tests", secret)
        grpc = Server([servicer])
        await grpc.start("127.0.0.1", 0)
        port = grpc._server.sockets[0].getsockname()[1]
        os.environ.update(MODAL_SERVER_URL="http://127.0.0.1:%d" % port, MODAL_TOKEN_ID=CREDENTIALS[0], MODAL_TOKEN_SECRET=CREDENTIALS[1])
        sys.path.insert(0, GATEWAY)
        import app as gateway

        servicer.launcher = gateway.launch_job.local
        web = behind_proxy(gateway.web.local(), servicer)
        server = uvicorn.Server(uvicorn.Config(web, host="127.0.0.1", port=0, log_level="warning", lifespan="off"))
        serving = asyncio.ensure_future(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        endpoint = "http://127.0.0.1:%d" % server.servers[0].sockets[0].getsockname()[1]
        servicer.web_url = endpoint
        print(json.dumps({"endpoint": endpoint, "modal": os.environ["MODAL_SERVER_URL"]}), flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        server.should_exit = True
        await serving
        grpc.close()


if __name__ == "__main__":
    os.environ["MODAL_CONFIG_PATH"] = os.devnull
    asyncio.run(main(*sys.argv[1:]))
    # Launches may still wait for Modal.
    os._exit(0)
