"""The part of Modal's control plane with which the gateway is deployed: apps, Functions, the files of the gateway, proxy tokens."""

import uuid

from google.protobuf.empty_pb2 import Empty
from modal_proto import api_pb2


class Deployment:
    """A part of `Servicer`."""

    def __init__(self):
        self.published = {}
        self.functions = {}
        # Name and secret by id.
        self.tokens = {}
        # Set by the server: the address of the gateway.
        self.web_url = None

    async def AppGetByDeploymentName(self, stream):
        request = await self._answer(stream)
        await stream.send_message(api_pb2.AppGetByDeploymentNameResponse(app_id=self.published.get(request.name, "")))

    async def AppGetLayout(self, stream):
        request = await self._answer(stream)
        ids = {tag: function_id for (app_id, tag), function_id in self.functions.items() if app_id == request.app_id}
        await stream.send_message(api_pb2.AppGetLayoutResponse(app_layout=api_pb2.AppLayout(function_ids=ids)))

    async def AppCreate(self, stream):
        await self._answer(stream)
        await stream.send_message(api_pb2.AppCreateResponse(app_id=self.objects.id_of("ap", uuid.uuid4().hex)))

    async def FunctionPrecreate(self, stream):
        request = await self._answer(stream)
        function_id = self.objects.id_of("fu", request.app_id, request.function_name)
        metadata = api_pb2.FunctionHandleMetadata(function_name=request.function_name)
        await stream.send_message(api_pb2.FunctionPrecreateResponse(function_id=function_id, handle_metadata=metadata))

    async def FunctionCreate(self, stream):
        request = await self._answer(stream)
        function = request.function if request.HasField("function") else request.function_data.ranked_functions[0].function
        self.functions[(request.app_id, function.function_name)] = request.existing_function_id
        metadata = api_pb2.FunctionHandleMetadata(
            function_name=function.function_name, web_url=self.web_url if function.webhook_config.type else ""
        )
        await self.cloud.call("POST", "/functions", _words_of(function))
        data = api_pb2.FunctionData(ranked_functions=[api_pb2.FunctionData.RankedFunction(function=function)])
        await stream.send_message(
            api_pb2.FunctionCreateResponse(
                function_id=request.existing_function_id, function=function, handle_metadata=metadata, function_data=data
            )
        )

    async def MountBatchedCheckExistence(self, stream):
        """Has every file already."""
        await self._answer(stream)
        await stream.send_message(api_pb2.MountBatchedCheckExistenceResponse())

    async def MountPutFile(self, stream):
        await self._answer(stream)
        await stream.send_message(api_pb2.MountPutFileResponse(exists=True))

    async def MountGetOrCreate(self, stream):
        request = await self._answer(stream)
        mount_id = self.objects.id_of("mo", uuid.uuid4().hex)
        await stream.send_message(api_pb2.MountGetOrCreateResponse(mount_id=mount_id))

    async def AppPublish(self, stream):
        request = await self._answer(stream)
        self.published[request.name] = request.app_id
        await stream.send_message(api_pb2.AppPublishResponse(url="http://127.0.0.1/apps"))

    async def AppHeartbeat(self, stream):
        await self._answer(stream)
        await stream.send_message(Empty())

    AppClientDisconnect = AppHeartbeat

    async def AppStop(self, stream):
        request = await self._answer(stream)
        self.published = {name: app_id for name, app_id in self.published.items() if app_id != request.app_id}
        await stream.send_message(Empty())

    async def WebhookTokenCreate(self, stream):
        request = await self._answer(stream)
        token_id = "wk-%s" % uuid.uuid4().hex[:12]
        secret = "ws-%s" % uuid.uuid4().hex
        self.tokens[token_id] = (request.name, secret)
        await stream.send_message(api_pb2.TokenCreateResponse(token_id=token_id, token_secret=secret))

    async def WebhookTokenList(self, stream):
        await self._answer(stream)
        tokens = [api_pb2.WebhookToken(token_id=token_id, name=name) for token_id, (name, _) in self.tokens.items()]
        await stream.send_message(api_pb2.WebhookTokenListResponse(tokens=tokens))

    async def WebhookTokenDelete(self, stream):
        request = await self._answer(stream)
        self.tokens.pop(request.token_id, None)
        await stream.send_message(Empty())


def _words_of(function):
    """What the test of the set-up compares."""
    return {
        "name": function.function_name,
        "timeoutSeconds": function.timeout_secs,
        "containersMax": function.concurrency_limit,
        "inputsMax": function.max_concurrent_inputs,
        "needsProxyToken": function.webhook_config.requires_proxy_auth,
        "label": function.webhook_config.requested_suffix,
    }
