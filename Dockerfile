# The images; the tests build the same trees without Docker (e2e/kubernetes/image-tree).
#   docker build --target operator -t kubegang/operator:0.1.0 .
#   docker build --target agent    -t kubegang/agent:0.1.0 .
#   docker build --target launcher -t kubegang/launcher:0.1.0 .
#   docker build --target records  -t kubegang/records:0.1.0 .
FROM debian:bookworm-slim AS build
WORKDIR /src
COPY tools/install-packages tools/packages.txt tools/
RUN tools/install-packages tools/packages.txt
COPY . .
RUN cmake --preset release \
 && cmake --build --preset release --target released \
 && e2e/kubernetes/image-tree /tree/operator build/bin/kubegang-operator build/bin/kubectl-gang \
 && e2e/kubernetes/image-tree /tree/agent build/bin/kubegang-agent \
 && e2e/kubernetes/image-tree /tree/launcher build/bin/kubegang-launcher build/bin/kubegang-pmix build/bin/kubectl-gang \
 && e2e/kubernetes/image-tree /tree/records build/bin/kubegang-records

# Nothing but the program and the shared libraries that it needs: no shell, no package manager. The agent
# is root, since the freezer's files belong to root (docs/security.md).
FROM scratch AS agent
COPY --from=build /tree/agent /
ENTRYPOINT ["/kubegang-agent"]

# Two static programs and kubectl-gang with its libraries, which an init container copies into the pods
# of batch scripts, or which these pods mount.
FROM scratch AS launcher
COPY --from=build /tree/launcher /
USER 65532:65532
ENTRYPOINT ["/kubegang-launcher"]

FROM scratch AS records
COPY --from=build /tree/records /
USER 65532:65532
ENTRYPOINT ["/kubegang-records"]

FROM scratch AS operator
COPY --from=build /tree/operator /
USER 65532:65532
ENTRYPOINT ["/kubegang-operator"]
