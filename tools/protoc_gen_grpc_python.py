"""A protoc plugin that writes `*_pb2_grpc.py`.

grpcio-tools carries this generator only inside its own protoc, and the `protoc-gen-python_grpc` that may be
found on PATH is another project's. So the request is handed to that protoc as a descriptor set. Files without
a service get no output.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from google.protobuf.compiler import plugin_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorSet


def generate(request: plugin_pb2.CodeGeneratorRequest) -> plugin_pb2.CodeGeneratorResponse:
    response = plugin_pb2.CodeGeneratorResponse(
        supported_features=plugin_pb2.CodeGeneratorResponse.FEATURE_PROTO3_OPTIONAL
    )
    wanted = set(request.file_to_generate)
    names = [file.name for file in request.proto_file if file.name in wanted and file.service]
    if not names:
        return response
    with tempfile.TemporaryDirectory() as scratch:
        image = Path(scratch, "image.binpb")
        image.write_bytes(FileDescriptorSet(file=request.proto_file).SerializeToString())
        out = Path(scratch, "out")
        out.mkdir()
        protoc = [sys.executable, "-m", "grpc_tools.protoc"]
        # Stdout is this plugin's reply, so nothing else may write there.
        run = subprocess.run(
            [*protoc, f"--descriptor_set_in={image}", f"--grpc_python_out={out}", *names], stdout=sys.stderr
        )
        if run.returncode != 0:
            response.error = "grpc_tools.protoc failed; its message is above"
            return response
        for path in sorted(out.rglob("*.py")):
            response.file.add(name=path.relative_to(out).as_posix(), content=path.read_text("utf-8"))
    return response


if __name__ == "__main__":
    reply = generate(plugin_pb2.CodeGeneratorRequest.FromString(sys.stdin.buffer.read()))
    sys.stdout.buffer.write(reply.SerializeToString())
