# How scripts end, as scontrol shows it.
for c in 0 1 2 100 127 128 193 200 255 256; do id=$(sbatch --parsable -o /dev/null --wrap="exit $c"); settle; echo "$c: $(scontrol show job $id | grep -oE '(JobState|ExitCode)=[^ ]*' | tr '\n' ' ')"; done
for s in 1 2 3 6 9 10 15; do id=$(sbatch --parsable -o /dev/null --wrap="kill -$s \$\$; sleep 1"); settle; echo "signal $s: $(scontrol show job $id | grep -oE '(JobState|ExitCode)=[^ ]*' | tr '\n' ' ')"; done
