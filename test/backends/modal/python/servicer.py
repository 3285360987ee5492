"""Modal's control plane for the real client: the calls that the gateway makes, over gRPC, with the Sandboxes of a small cloud.

The class is made from the base class that the `modal` package ships. A call that is not implemented here fails as UNIMPLEMENTED, so a
newer client that needs another call is noticed.
"""

import asyncio
import base64
import json
import time
import traceback
import uuid

from deployment import Deployment
from google.protobuf.empty_pb2 import Empty
from google.protobuf.timestamp_pb2 import Timestamp
from grpclib import GRPCError, Status
from modal._serialization import deserialize, serialize_data_format
from modal_proto import api_grpc, api_pb2
from small_cloud import Refused

# The ids of Sandboxes with a GPU have 22 characters after their prefix: the client tells the two kinds apart by that.
V1_LENGTH = 22
RESULT = api_pb2.GenericResult


def _token() -> str:
    def part(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    return ".".join((part({"alg": "none"}), part({"exp": int(time.time()) + 3600}), "x"))


class Objects:
    """Ids of everything with a name, by kind."""

    def __init__(self):
        self._ids = {}

    def id_of(self, prefix, *name):
        return self._ids.setdefault((prefix, *name), "%s-%s" % (prefix, uuid.uuid4().hex[:V1_LENGTH]))

    def name_of(self, object_id):
        return next((key[1:] for key, value in self._ids.items() if value == object_id), None)

    def named(self, prefix):
        return [key[1:] for key in self._ids if key[0] == prefix]

    def forget(self, object_id):
        self._ids = {key: value for key, value in self._ids.items() if value != object_id}


class Servicer(Deployment, api_grpc.ModalClientBase):
    def __init__(self, cloud, credentials):
        super().__init__()
        self.cloud = cloud
        self.credentials = credentials
        self.objects = Objects()
        self.entries = {}
        self.calls = {}
        self.images = {}
        self.secrets = {}
        # Names of the Secrets with which registries are asked, by image.
        self.logins = {}
        # Set by the server: the Function that `spawn` runs.
        self.launcher = None

    async def _answer(self, stream):
        request = await stream.recv_message()
        token = (stream.metadata.get("x-modal-token-id"), stream.metadata.get("x-modal-token-secret"))
        if token != self.credentials:
            raise GRPCError(Status.UNAUTHENTICATED, "Token ID is malformed or expired")
        return request

    # The session

    async def ClientHello(self, stream):
        await self._answer(stream)
        await stream.send_message(api_pb2.ClientHelloResponse(image_builder_version="2025.06"))

    async def AuthTokenGet(self, stream):
        await self._answer(stream)
        await stream.send_message(api_pb2.AuthTokenGetResponse(token=_token()))

    async def EnvironmentGetOrCreate(self, stream):
        request = await self._answer(stream)
        settings = api_pb2.EnvironmentSettings(image_builder_version="2025.06")
        metadata = api_pb2.EnvironmentMetadata(name=request.deployment_name or "main", settings=settings)
        environment_id = self.objects.id_of("en", request.deployment_name)
        await stream.send_message(api_pb2.EnvironmentGetOrCreateResponse(environment_id=environment_id, metadata=metadata))

    async def AppGetOrCreate(self, stream):
        request = await self._answer(stream)
        name = ("ap", request.app_name)
        creates = request.object_creation_type == api_pb2.OBJECT_CREATION_TYPE_CREATE_IF_MISSING
        if not creates and (request.app_name,) not in self.objects.named("ap"):
            raise GRPCError(Status.NOT_FOUND, "App '%s' not found" % request.app_name)
        await stream.send_message(api_pb2.AppGetOrCreateResponse(app_id=self.objects.id_of(*name)))

    # Functions: only the launcher, which runs in this process

    async def FunctionGet(self, stream):
        request = await self._answer(stream)
        # The launcher runs in this process, deployed or not.
        if request.object_tag != "launch_job" and request.app_name not in self.published:
            raise GRPCError(Status.NOT_FOUND, "Function %s/%s not found" % (request.app_name, request.object_tag))
        metadata = api_pb2.FunctionHandleMetadata(
            web_url=self.web_url if request.object_tag == "web" else "",
            function_name=request.object_tag, function_type=api_pb2.Function.FUNCTION_TYPE_FUNCTION, supported_input_formats=[api_pb2.DATA_FORMAT_PICKLE]
        )
        function_id = self.objects.id_of("fu", request.app_name, request.object_tag)
        ranked = [api_pb2.FunctionData.RankedFunction(function=api_pb2.Function(function_name=request.object_tag))]
        data = api_pb2.FunctionData(ranked_functions=ranked)
        await stream.send_message(api_pb2.FunctionGetResponse(function_id=function_id, handle_metadata=metadata, function=data))

    async def FunctionMap(self, stream):
        request = await self._answer(stream)
        call_id = self.objects.id_of("fc", uuid.uuid4().hex)
        (item,) = request.pipelined_inputs
        args, kwargs = deserialize(item.input.args, None)
        self.calls[call_id] = asyncio.ensure_future(self.launcher(*args, **kwargs))
        self.calls[call_id].add_done_callback(_report)
        pipelined = [api_pb2.FunctionPutInputsResponseItem(idx=item.idx, input_id=self.objects.id_of("in", call_id))]
        await stream.send_message(api_pb2.FunctionMapResponse(function_call_id=call_id, pipelined_inputs=pipelined))

    async def FunctionGetOutputs(self, stream):
        request = await self._answer(stream)
        call = self.calls.get(request.function_call_id)
        if call is None:
            raise GRPCError(Status.NOT_FOUND, "no such call")
        if not call.done():
            await stream.send_message(api_pb2.FunctionGetOutputsResponse(num_unfinished_inputs=1))
            return
        data = serialize_data_format(str(call.exception() or call.result()), api_pb2.DATA_FORMAT_PICKLE)
        result = RESULT(status=RESULT.GENERIC_STATUS_SUCCESS, data=data)
        item = api_pb2.FunctionGetOutputsItem(result=result, data_format=api_pb2.DATA_FORMAT_PICKLE)
        await stream.send_message(api_pb2.FunctionGetOutputsResponse(outputs=[item]))

    # Images, secrets, volumes

    async def ImageGetOrCreate(self, stream):
        request = await self._answer(stream)
        text = "\n".join(request.image.dockerfile_commands)
        image_id = self.objects.id_of("im", request.image.SerializeToString(deterministic=True))
        bases = [self.images.get(base.image_id, "") for base in request.image.base_images]
        self.images[image_id] = "\n".join([*bases, text])
        secret = self.objects.name_of(request.image.image_registry_config.secret_id)
        login = secret[0] if secret else next((self.logins[base.image_id] for base in request.image.base_images if base.image_id in self.logins), None)
        if login is not None:
            self.logins[image_id] = login
        await stream.send_message(api_pb2.ImageGetOrCreateResponse(image_id=image_id))

    async def ImageJoinStreaming(self, stream):
        request = await self._answer(stream)
        try:
            login = self.logins.get(request.image_id)
            body = {"dockerfile": self.images.get(request.image_id, ""), **({"secret": login} if login else {})}
            await self.cloud.call("POST", "/images", body)
            result = RESULT(status=RESULT.GENERIC_STATUS_SUCCESS)
        except Refused as refused:
            result = RESULT(status=RESULT.GENERIC_STATUS_FAILURE, exception=refused.message)
        await stream.send_message(api_pb2.ImageJoinStreamingResponse(result=result, eof=True))

    async def SecretGetOrCreate(self, stream):
        request = await self._answer(stream)
        metadata = None
        if request.object_creation_type == api_pb2.OBJECT_CREATION_TYPE_ANONYMOUS_OWNED_BY_APP:
            secret_id = self.objects.id_of("st", uuid.uuid4().hex)
            self.secrets[secret_id] = dict(request.env_dict)
        else:
            known = await self.cloud.find("secrets", request.deployment_name)
            if known is None:
                raise GRPCError(Status.NOT_FOUND, "Secret '%s' not found" % request.deployment_name)
            secret_id = self.objects.id_of("st", known["name"])
            metadata = api_pb2.SecretMetadata(name=known["name"], keys=known["keys"])
        await stream.send_message(api_pb2.SecretGetOrCreateResponse(secret_id=secret_id, metadata=metadata))

    async def VolumeGetOrCreate(self, stream):
        request = await self._answer(stream)
        name = request.deployment_name
        volume_id = self.objects.id_of("vo", name)
        if request.object_creation_type == api_pb2.OBJECT_CREATION_TYPE_CREATE_IF_MISSING:
            await self.cloud.call("PUT", "/volumes/" + name)
        elif await self.cloud.find("volumes", name) is None:
            raise GRPCError(Status.NOT_FOUND, "Volume '%s' not found" % name)
        await stream.send_message(api_pb2.VolumeGetOrCreateResponse(volume_id=volume_id, metadata=api_pb2.VolumeMetadata(name=name)))

    async def VolumeList(self, stream):
        await self._answer(stream)
        items = []
        for volume in (await self.cloud.call("GET", "/volumes"))["volumes"]:
            info = api_pb2.CreationInfo(created_at=volume["createdAtMs"] / 1000)
            metadata = api_pb2.VolumeMetadata(name=volume["name"], creation_info=info)
            items.append(api_pb2.VolumeListItem(label=volume["name"], volume_id=self.objects.id_of("vo", volume["name"]), metadata=metadata))
        await stream.send_message(api_pb2.VolumeListResponse(items=items))

    async def VolumeDelete(self, stream):
        request = await self._answer(stream)
        name = self.objects.name_of(request.volume_id)
        if name is not None:
            await self.cloud.call("DELETE", "/volumes/" + name[0])
            self.objects.forget(request.volume_id)
        await stream.send_message(Empty())

    # The registry

    async def DictGetOrCreate(self, stream):
        request = await self._answer(stream)
        dict_id = self.objects.id_of("di", request.deployment_name)
        metadata = api_pb2.DictMetadata(name=request.deployment_name)
        await stream.send_message(api_pb2.DictGetOrCreateResponse(dict_id=dict_id, metadata=metadata))

    async def DictUpdate(self, stream):
        request = await self._answer(stream)
        (entry,) = request.updates
        name = (request.dict_id, entry.key)
        creates = not request.if_not_exists or name not in self.entries
        if creates:
            self.entries[name] = entry.value
        await stream.send_message(api_pb2.DictUpdateResponse(created=creates))

    async def DictGet(self, stream):
        request = await self._answer(stream)
        value = self.entries.get((request.dict_id, request.key))
        await stream.send_message(api_pb2.DictGetResponse(found=value is not None, value=value))

    async def DictPop(self, stream):
        request = await self._answer(stream)
        value = self.entries.pop((request.dict_id, request.key), None)
        await stream.send_message(api_pb2.DictPopResponse(found=value is not None, value=value))

    async def DictContents(self, stream):
        request = await self._answer(stream)
        for (dict_id, key), value in list(self.entries.items()):
            if dict_id == request.dict_id:
                await stream.send_message(api_pb2.DictEntry(key=key, value=value))

    # Sandboxes

    async def SandboxCreate(self, stream):
        request = await self._answer(stream)
        env = {}
        for secret_id in request.definition.secret_ids:
            env.update(self.secrets.get(secret_id, {}))
        sandbox = await self._create(request, env)
        await stream.send_message(api_pb2.SandboxCreateResponse(sandbox_id=sandbox["id"], metadata=self._metadata(sandbox)))

    async def SandboxCreateV2(self, stream):
        request = await self._answer(stream)
        env = {}
        for source in request.secret_sources:
            env.update(source.env.contents)
        sandbox = await self._create(request, env)
        await stream.send_message(
            api_pb2.SandboxCreateV2Response(sandbox_id=sandbox["id"], task_id=sandbox["taskId"] or "", metadata=self._metadata(sandbox))
        )

    async def _create(self, request, env):
        definition = request.definition
        resources = definition.resources
        gpu = resources.gpu_config
        body = {
            "app": self.objects.name_of(request.app_id)[0],
            "name": definition.name,
            "tags": {tag.tag_name: tag.tag_value for tag in request.tags},
            "command": list(definition.entrypoint_args),
            "env": env,
            "dockerfile": self.images[definition.image_id],
            "timeoutMs": definition.timeout_secs * 1000,
            "gpu": {"type": gpu.gpu_type, "count": gpu.count} if gpu.count else None,
            "milliCpu": resources.milli_cpu,
            "memoryMiB": resources.memory_mb,
            "volumes": {mount.mount_path: self.objects.name_of(mount.volume_id)[0] for mount in definition.volume_mounts},
        }
        return await self._sandbox("POST", "/sandboxes", body)

    async def _sandbox(self, method, path, body=None):
        try:
            return await self.cloud.call(method, path, body)
        except Refused as refused:
            raise GRPCError(Status[refused.code], refused.message) from refused

    def _metadata(self, sandbox):
        return api_pb2.SandboxHandleMetadata(app_id=self.objects.id_of("ap", sandbox["app"]))

    async def SandboxGetTaskId(self, stream):
        request = await self._answer(stream)
        sandbox = await self._sandbox("GET", "/sandboxes/" + request.sandbox_id)
        answer = api_pb2.SandboxGetTaskIdResponse()
        if sandbox["taskId"]:
            answer.task_id = sandbox["taskId"]
        elif sandbox["result"]:
            answer.task_result.CopyFrom(_result(sandbox))
        await stream.send_message(answer)

    async def SandboxWait(self, stream):
        request = await self._answer(stream)
        sandbox = await self._sandbox("GET", "/sandboxes/" + request.sandbox_id)
        await stream.send_message(api_pb2.SandboxWaitResponse(result=_result(sandbox), metadata=self._metadata(sandbox)))

    SandboxWaitV2 = SandboxWait

    async def SandboxListV2(self, stream):
        """Newest first; the client asks for the next page until one is empty."""
        request = await self._answer(stream)
        tags = {tag.tag_name: tag.tag_value for tag in request.tags}
        listed = await self.cloud.call("POST", "/sandboxes/list", {"app": self.objects.name_of(request.app_id)[0], "tags": tags})
        page = [each for each in listed["sandboxes"] if not request.before_timestamp or each["createdAtMs"] / 1000 < request.before_timestamp]
        infos = [api_pb2.SandboxInfo(id=each["id"], created_at=each["createdAtMs"] / 1000, metadata=self._metadata(each)) for each in page]
        await stream.send_message(api_pb2.SandboxListResponse(sandboxes=infos))

    async def SandboxTagsGet(self, stream):
        request = await self._answer(stream)
        sandbox = await self._sandbox("GET", "/sandboxes/" + request.sandbox_id)
        tags = [api_pb2.SandboxTag(tag_name=name, tag_value=value) for name, value in sandbox["tags"].items()]
        await stream.send_message(api_pb2.SandboxTagsGetResponse(tags=tags))

    SandboxTagsGetV2 = SandboxTagsGet

    async def SandboxTerminate(self, stream):
        request = await self._answer(stream)
        await self._sandbox("POST", "/sandboxes/%s/terminate" % request.sandbox_id)
        await stream.send_message(api_pb2.SandboxTerminateResponse())

    SandboxTerminateV2 = SandboxTerminate

    async def SandboxGetTaskIdV2(self, stream):
        request = await self._answer(stream)
        sandbox = await self._sandbox("GET", "/sandboxes/" + request.sandbox_id)
        await stream.send_message(api_pb2.SandboxGetTaskIdResponse(task_id=sandbox["taskId"] or ""))

    async def AppFetchLogs(self, stream):
        request = await self._answer(stream)
        found = await self.cloud.call("GET", "/tasks/%s/logs" % request.task_id)
        # Split as Modal does: an item need not be a line.
        items = [api_pb2.TaskLogs(data=text, file_descriptor=api_pb2.FILE_DESCRIPTOR_STDOUT) for text in found["items"]]
        await stream.send_message(api_pb2.AppFetchLogsResponse(batches=[api_pb2.TaskLogsBatch(items=items)]))

    async def AppCountLogs(self, stream):
        request = await self._answer(stream)
        found = await self.cloud.call("GET", "/tasks/%s/logs" % request.task_id)
        start = Timestamp(seconds=request.since.seconds)
        bucket = api_pb2.AppCountLogsResponse.LogBucket(bucket_start_at=start, stdout_logs=len(found["items"]))
        await stream.send_message(api_pb2.AppCountLogsResponse(buckets=[bucket]))

    # The workspace

    async def WorkspaceNameLookup(self, stream):
        await self._answer(stream)
        await stream.send_message(api_pb2.WorkspaceNameLookupResponse(username="sim"))

    async def WorkspaceBillingRates(self, stream):
        await self._answer(stream)
        rates = (await self.cloud.call("GET", "/rates"))["usd"]
        await stream.send_message(api_pb2.WorkspaceBillingRatesResponse(rates=rates))


def _result(sandbox):
    result = sandbox["result"]
    if not result:
        return RESULT()
    return RESULT(status=RESULT.GenericStatus.Value("GENERIC_STATUS_" + result["status"]), exitcode=result["exitCode"], exception=result["message"])


def _report(call):
    if not call.cancelled() and call.exception() is not None:
        traceback.print_exception(call.exception())


def _unimplemented(name):
    async def refuse(self, stream):
        await stream.recv_message()
        raise GRPCError(Status.UNIMPLEMENTED, "%s is not part of the test's control plane" % name)

    return refuse


for _name in list(Servicer.__abstractmethods__):
    setattr(Servicer, _name, _unimplemented(_name))
Servicer.__abstractmethods__ = frozenset()
