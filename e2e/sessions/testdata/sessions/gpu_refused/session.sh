# What sbatch says to GPUs that cannot be, by its exit code.
# cluster: {nodes: [{name: "n[1-2]", sockets: 1, cores: 4, threads: 1, memory: 4000, gres: "gpu:4"}], conf: {GresTypes: gpu}}
for options in --gres=gpu:5 --gres=gpu:-1 --gres=gpu:1.5 --gres=gpu:0 --gpus=0 --gpus=-1 --gpus=x:y:z --gpus-per-node=5 '-N2 --gpus=1' '-N2 --gpus=9' '--gpus=4 --gpus-per-node=3' '-N2 --gpus=6 --gpus-per-node=2' \
  '-n2 --gpus=3 --gpus-per-task=1' '-n4 --gpus-per-task=3' '--gpus-per-task=1 -N1' '--gpus=2 --cpus-per-gpu=9' '--gpus=1 --cpus-per-gpu=0' '--gpus=1 --cpus-per-gpu=2 -c2' '--gpus=1 --mem-per-gpu=9000' \
  '--gpus=1 --mem-per-gpu=100 --mem=200' '--gpus=1 --mem-per-gpu=x' --gres=nic:1 --gres= --gres=gpu,gpu --gres=gpu:1,gpu:1 --gres=gres:gpu:1 --gpus= '--gpus=1 --gres=none' '--gpu-bind=closest --gpus=1' '--gpu-bind=none --gpus=1' '--gpus=2 --exclusive' '--gres-flags=disable-binding --gpus=1'; do
  sbatch $options -o /dev/null --wrap true > /dev/null 2>&1; echo "$options: $?"; scancel -u root; settle; done
