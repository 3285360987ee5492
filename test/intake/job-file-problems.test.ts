import { describe, expect, it, jest } from '@jest/globals'
import { complaints, parsed, problems } from './reading'

describe('what is wrong in a job file', () => {
  it('names shared memory without a container that has it', () => {
    expect(complaints('run: a\nresources: { shm: 8GB }')).toEqual([
      '2:19: resources.shm is set without an image, and only containers have their own shared memory. Add image, or remove it.',
    ])
  })

  it('is reported all at once, each with its place and what to write instead', () => {
    const text = `name: Char_LM
command: python
interruptible: yes
duration: 90
optimise: speed
gpus: 4
resources:
  gpu_memory: 24
  gpus: four
  acelerators: H100
  memory: 80GB..24GB
checkpoint:
  evry: 5m
budget: 25 EUR
backends: [local:sport]
retries: 3
env:
  1X: a
  B:
`
    expect(complaints(text)).toEqual([
      '1:7: name "Char_LM" is not lower-case letters, digits and inner dashes. Write char-lm.',
      '2:1: command is not a field. Did you mean run?',
      '3:16: interruptible must be true or false, but is "yes". Write true.',
      '4:11: duration "90" is not a duration. Add its unit: 90s, 90m, 90h or 90d.',
      '5:1: optimise is not a field. Did you mean optimize?',
      '6:1: gpus is not a field. Write it as resources.gpus.',
      '8:15: resources.gpu_memory "24" is not a size. Add its unit: 24GB or 24GiB.',
      '9:9: resources.gpus "four" is not a whole number or a range of them. Write 4, 16+ (at least), 2..8 (from, to) or ..8 (at most).',
      '10:3: resources.acelerators is not a field. Did you mean accelerators?',
      '11:11: resources.memory "80GB..24GB" has its bounds in the wrong order. Write 24GB..80GB.',
      '13:3: checkpoint.evry is not a field. Did you mean every?',
      '14:9: budget "25 EUR" is not an amount of US dollars. Write $25, 25.50 or "25 USD".',
      '15:12: backends[0] "sport" is not a capacity type (spot, on-demand, reserved). Write local:spot, or local for any.',
      '16:10: retries must be a mapping of names to values, but is 3. Write, for example, retries: { failures: 1 }.',
      '18:3: env.1X "1X" is not the name of a variable. Use letters, digits and _, no digit first.',
      '19:5: env.B has no value. Give it one, or remove it.',
    ])
  })

  it.each([
    // The command
    ['name: x', '1:1: the job has no command. Add script: train.py, or run: and a command.'],
    ['run: a\nscript: b.py', '2:1: script is set together with run. Keep one of the two.'],
    ['run: "  "', '1:6: run is empty. Write a shell command, or remove the field.'],
    ['run: 5', '1:6: run must be a text, but is 5. Put it in quotes: "5".'],
    ['run: "a\\0b"', '1:6: run has a NUL character. Remove it.'],
    [
      'script: python3 train.py --x',
      '1:9: script "python3 train.py --x" does not begin with a Python file of the working directory. Write train.py --x.',
    ],
    [
      'script: train.sh',
      '1:9: script "train.sh" does not begin with a Python file of the working directory. Write run: train.sh.',
    ],
    [
      'script: /opt/train.py',
      '1:9: script "/opt/train.py" does not begin with a Python file of the working directory. Write run: /opt/train.py.',
    ],
    ['run: x\nsetup:', '2:7: setup has no value. Give it one, or remove it.'],
    [
      'run: x\nshell: bash -c "x"',
      '2:8: shell "bash -c \\"x\\"" is not a shell with its options, such as bash -eo pipefail. Write, for example, shell: sh.',
    ],
    // Names and texts
    ['run: x\nname: 5', '2:7: name must be a text, but is 5. Put it in quotes: "5".'],
    [`run: x\nname: ${'a'.repeat(41)}`, '2:7: name has 41 characters of at most 40. Shorten it.'],
    [
      'run: x\nimage: a b',
      '2:8: image "a b" is not the name of a container image. Write, for example, image: pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime.',
    ],
    [
      'run: x\nimage: [a]',
      '2:8: image must be a text, but is a list. Write, for example, image: pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime.',
    ],
    [
      'run: x\nworkdir: true',
      '2:10: workdir must be a folder, or false, but is true. Write, for example, workdir: src.',
    ],
    [
      'run: x\nreservation: res ranker',
      '2:14: reservation "res ranker" is not the id of a reservation. Write, for example, reservation: res-ranker.',
    ],
    // Resources
    [
      'run: x\nresources: none',
      '2:12: resources must be a mapping of names to values, but is "none". Write, for example, resources: { gpus: 1, gpu_memory: 24GB }.',
    ],
    ['run: x\nresources: {gpus: 65}', '2:19: resources.gpus "65" is too large. Write at most 64.'],
    [
      'run: x\nresources: {cpus: 1.5}',
      '2:19: resources.cpus "1.5" is not a whole number or a range of them. Write 4, 16+ (at least), 2..8 (from, to) or ..8 (at most).',
    ],
    [
      'run: x\nresources: {gpus: true}',
      '2:19: resources.gpus must be a whole number or a range of them, but is true. Write, for example, gpus: 1.',
    ],
    [
      'run: x\nresources: {accelerators: "H100:8"}',
      '2:27: resources.accelerators "H100:8" is not the name of an accelerator. Write H100 here, and gpus: 8.',
    ],
    [
      'run: x\nresources: {gpus: 0, gpu_memory: 8GB}',
      '2:19: resources.gpus is 0, but GPU memory is requested. Remove one of the two.',
    ],
    [
      'run: x\nresources: {accelerators: [H100], gpus: 0}',
      '2:41: resources.gpus is 0, but an accelerator is requested. Remove one of the two.',
    ],
    [
      'run: x\nresources: {memory: 2000000TB}',
      '2:21: resources.memory "2000000TB" is too large. Write at most 1048576GiB.',
    ],
    [
      'run: x\nresources: {disk_throughput: 124}',
      '2:30: resources.disk_throughput must be at least 125, but is 124. Write, for example, disk_throughput: 500.',
    ],
    [
      'run: x\nresources: {disk_throughput: 4000}',
      '2:30: resources.disk_throughput must be at most 2000, but is 4000. Write, for example, disk_throughput: 500.',
    ],
    [
      'run: x\nresources: {disk_iops: 100000}',
      '2:24: resources.disk_iops must be at most 80000, but is 100000. Write, for example, disk_iops: 6000.',
    ],
    [
      'run: x\nresources: {disk_throughput: 1000, disk_iops: 3000}',
      '2:30: resources.disk_throughput is 1000 MiB/s, for which a disk needs 4000 operations per second, but disk_iops is 3000. Write disk_iops: 4000, or leave it out.',
    ],
    [
      'run: x\nresources: {disk: ..50GiB, disk_iops: 30000}',
      '2:39: resources.disk_iops is 30000, but a disk of at most 50 GiB has at most 25000. Write at most 25000, or allow a larger disk.',
    ],
    // Time and money
    ['run: x\nduration: 0s', '2:11: duration "0s" is too small. Write at least 1s.'],
    [
      'run: x\nduration: 10h on A1000',
      '2:11: duration names "A1000", a GPU type of unknown training speed. Write the duration on a GPU type whose speed is known, such as A100.',
    ],
    [
      'run: x\nduration: 10h on',
      '2:11: duration "10h on" is not a duration. Write days, hours, minutes and seconds in this order, such as 90s, 30m, 2h, 1d12h or 1.5h.',
    ],
    ['run: x\nduration: 12:00:00', '2:11: duration "12:00:00" is not a duration. Write 12h.'],
    ['run: x\nduration: 2-06:30:00', '2:11: duration "2-06:30:00" is not a duration. Write 2d6h30m.'],
    ['run: x\nbudget: $1,000.50', '2:9: budget "$1,000.50" is not an amount of US dollars. Write $1000.50.'],
    ['run: x\nduration: 9999d', '2:11: duration "9999d" is too large. Write at most 366d.'],
    [
      'run: x\ndeadline: 2026-11-21T11:59Z',
      '2:11: deadline is in the past. Write a later one, or a duration from now such as 36h.',
    ],
    [
      'run: x\ndeadline: 2027-01-01 10:00',
      '2:11: deadline "2027-01-01 10:00" has no time zone. Write 2027-01-01 10:00Z for UTC, or add an offset such as +01:00.',
    ],
    ['run: x\nbudget: 0', '2:9: budget "0" is too small. Write at least $0.01.'],
    ['run: x\nbudget: 1e9', '2:9: budget "1000000000" is too large. Write at most $100000000.00.'],
    [
      'run: x\noptimize: cheap',
      '2:11: optimize must be one of cost, time, reliability, balanced, speed, but is "cheap". Write, for example, optimize: time.',
    ],
    [
      'run: x\noptimize: Cost',
      '2:11: optimize must be one of cost, time, reliability, balanced, speed, but is "Cost". Write cost.',
    ],
    // Places
    [
      'run: x\nbackends: [Local]',
      '2:12: backends[0] "Local" is not a backend. Write its name, such as local, or local:spot for one capacity type of it.',
    ],
    [
      'run: x\nbackends: local:ondemand',
      '2:11: backends "ondemand" is not a capacity type (spot, on-demand, reserved). Write local:on-demand, or local for any.',
    ],
    [
      'run: x\nbackends: {local: spot}',
      '2:11: backends must be a list, but is a mapping. Write, for example, backends: [ local, local:spot ].',
    ],
    [
      'run: x\nretries: {failures: -1}',
      '2:21: retries.failures must be at least 0, but is -1. Write, for example, failures: 1.',
    ],
    [
      'run: x\nretries: {failures: 1.5}',
      '2:21: retries.failures must be a whole number, but is 1.5. Write, for example, failures: 1.',
    ],
    // Paths
    [
      'run: x\noutputs: [/etc/passwd]',
      '2:11: outputs[0] "/etc/passwd" is not inside the working directory. Write a path relative to it, with no ".." in it.',
    ],
    [
      'run: x\ncheckpoint: {directory: ../ckpt}',
      '2:25: checkpoint.directory "../ckpt" is not inside the working directory. Write a path relative to it, with no ".." in it.',
    ],
    [
      'run: x\ncheckpoint: {directory: .}',
      '2:25: checkpoint.directory "." is not inside the working directory. Write a path relative to it, with no ".." in it.',
    ],
    // Checkpoints
    [
      'run: x\ncheckpoint: {complete: /DONE}',
      '2:24: checkpoint.complete "/DONE" is not inside the working directory. Write a path relative to it, with no ".." in it.',
    ],
    [
      'run: x\ncheckpoint: {include: ["*.pt", "!*.tmp"]}',
      '2:32: checkpoint.include[1] "!*.tmp" begins with "!". Write *.tmp under exclude.',
    ],
    [
      'run: x\ncheckpoint: {exclude: "*.{log,csv}"}',
      '2:23: checkpoint.exclude "*.{log,csv}" has braces, which are not supported. Write * for any text, or one pattern for each name.',
    ],
    [
      'run: x\ncheckpoint: {include: "[z-a]"}',
      '2:23: checkpoint.include "[z-a]" has the range z-a, which is in reverse order. Correct it, or write * for any text.',
    ],
    [
      'run: x\noutputs: ["a/[9-0].pt"]',
      '2:11: outputs[0] "a/[9-0].pt" has the range 9-0, which is in reverse order. Correct it, or write * for any text.',
    ],
    [
      'run: x\noutputs: "run[1"',
      '2:10: outputs "run[1" has a [ without its ]. Close it, or write [[] for the character [.',
    ],
    [
      `run: x\noutputs: "${'**/'.repeat(21)}x"`,
      `2:10: outputs "${'**/'.repeat(20)}…" has 21 stars of at most 20. Write ** once for any number of folders.`,
    ],
    [
      'run: x\ncheckpoint: {complete: DONE, exclude: [cache, DONE]}',
      '2:24: checkpoint.complete[0] "DONE" is also under exclude, so no checkpoint would ever be complete. Remove one of the two.',
    ],
    [
      'run: x\nreservation: res-a\nreserved: false',
      '3:11: reserved contradicts reservation, which asks for reserved capacity. Remove one of the two.',
    ],
    [
      'run: x\nbackends: ec2:reserved\nreserved: false',
      '3:11: reserved contradicts backends, which asks for reserved capacity. Remove one of the two.',
    ],
    [
      'run: x\ncheckpoint: {quiet: 10}',
      '2:21: checkpoint.quiet "10" is not a duration. Add its unit: 10s, 10m, 10h or 10d.',
    ],
    ['run: x\ncheckpoint: {quiet: 0s}', '2:21: checkpoint.quiet "0s" is too small. Write at least 1s.'],
    [
      'run: x\ncheckpoint: {signal: SIGUSR}',
      '2:22: checkpoint.signal must be one of SIGTERM, SIGUSR1, SIGUSR2, SIGINT, but is "SIGUSR". Write SIGUSR1.',
    ],
    [
      'run: x\ncheckpoint: {signal: SIGKILL}',
      '2:22: checkpoint.signal must be one of SIGTERM, SIGUSR1, SIGUSR2, SIGINT, but is "SIGKILL". Write, for example, signal: SIGUSR1.',
    ],
    [
      'run: x\ncheckpoint: {keep: 0}',
      '2:20: checkpoint.keep must be at least 1, but is 0. Write, for example, keep: 5.',
    ],
    [
      'run: x\noutputs: ["~/x"]',
      '2:11: outputs[0] "~/x" is not inside the working directory. Write a path relative to it, with no ".." in it.',
    ],
    [
      'run: x\ninputs: {../x: "file:///x"}',
      '2:10: inputs["../x"] "../x" is not inside the working directory. Write a path relative to it, with no ".." in it.',
    ],
    // Inputs
    [
      'run: x\ninputs: 5',
      '2:9: inputs must be a mapping of paths to sources, or a list, but is 5. Write, for example, inputs: { data/train.bin: https://example.com/train.bin }.',
    ],
    [
      'run: x\ninputs: [data.txt]',
      '2:10: inputs[0] "data.txt" starts with none of file://, https://, http://, s3://. Write file:///path; files in the working directory are sent along automatically.',
    ],
    ['run: x\ninputs: [/srv/x]', '2:10: inputs[0] "/srv/x" has no scheme. Write file:///srv/x.'],
    [
      'run: x\ninputs: ["file://srv/x"]',
      '2:10: inputs[0] "file://srv/x" has a host. Write three slashes: file:///srv/x.',
    ],
    [
      'run: x\ninputs: ["s3://bucket"]',
      '2:10: inputs[0] "s3://bucket" names no file. Write its path after the host or bucket.',
    ],
    [
      'run: x\ninputs: ["https://u:p@example.com/x"]',
      '2:10: inputs[0] contains a user name or password, which would be stored with the job. Use a URL without credentials.',
    ],
    [
      'run: x\ninputs: ["https://example.com/a b"]',
      '2:10: inputs[0] "https://example.com/a b" has a space. Write it as %20.',
    ],
    [
      'run: x\ninputs: ["https://"]',
      '2:10: inputs[0] "https://" is not a URL. Write it as https://host/path.',
    ],
    [
      'run: x\ninputs: [{path: y}]',
      '2:10: inputs[0].source is missing. Write, for example, inputs: { data/train.bin: https://example.com/train.bin }.',
    ],
    [
      'run: x\ninputs: [{source: "file:///x", pth: y}]',
      '2:32: inputs[0].pth is not a field. Did you mean path?',
    ],
    [
      'run: x\ninputs: [{source: "file:///x", path: a}, {source: "file:///y", path: a}]',
      '2:70: inputs[1].path puts a second file at a. Choose another path.',
    ],
    [
      'run: x\ninputs: [{source: "file:///x", path: a/b}, {source: "file:///y", path: a}]',
      '2:38: inputs[0].path is inside a, which is a file. Choose another path.',
    ],
    // Environment and secrets
    [
      'run: x\nenv: [a]',
      '2:6: env must be a mapping of names to values, but is a list. Write, for example, env: { OMP_NUM_THREADS: "4" }.',
    ],
    [
      'run: x\nenv: {A: [x]}',
      '2:10: env.A must be a text, but is a list. Write, for example, env: { OMP_NUM_THREADS: "4" }.',
    ],
    [
      'run: x\nenv: {CRUCIBLE_JOB_ID: x}',
      '2:7: env.CRUCIBLE_JOB_ID "CRUCIBLE_JOB_ID" is a variable that Crucible sets. Choose another name.',
    ],
    ['run: x\nsecrets: [A, A]', '2:14: secrets[1] names A a second time. Remove it.'],
    [
      'run: x\nsecrets: [A]\nenv: {A: b}',
      '2:11: secrets[0] names A, which is also under env. Remove one of the two.',
    ],
    [
      'run: x\nenv: {WANDB_API_KEY: abc}',
      '2:22: env.WANDB_API_KEY looks like a secret, but env is stored with the job in plain text. Remove it here and add WANDB_API_KEY to secrets.',
    ],
    [
      'run: x\nenv: {X: hf_abcdefghijk}',
      '2:10: env.X looks like a secret, but env is stored with the job in plain text. Remove it here and add X to secrets.',
    ],
    [
      'run: x\nimage_login: {username: me, password: TOKEN}',
      '2:14: image_login is set without an image. Add image, or remove it.',
    ],
    [
      'run: x\nimage: y\nimage_login: {username: me, password: TOKEN}\nenv: {TOKEN: abc}',
      '3:39: image_login.password names TOKEN, which is also under env and so stored with the job in plain text. Remove it from env.',
    ],
    [
      'run: x\nimage: y\nimage_login: {username: "me and you", password: TOKEN}',
      '3:25: image_login.username must be the name of a user, without spaces, but is "me and you". Write, for example, username: team-robot.',
    ],
    // Names that every object has
    [
      'run: x\nconstructor: y',
      '2:1: constructor is not a field. Remove it; valid fields here are name, run, script, setup, shell, workdir, image, image_login, inputs, resources, duration, work_family, interruptible, isolation, accept, checkpoint, on_rebalance, deadline, budget, backends, regions, reservation, reserved, max_price, optimize, retries, env, secrets, outputs, require_outputs, tags.',
    ],
    [
      'run: x\n__proto__: {a: b}',
      '2:1: __proto__ is not a field. Remove it; valid fields here are name, run, script, setup, shell, workdir, image, image_login, inputs, resources, duration, work_family, interruptible, isolation, accept, checkpoint, on_rebalance, deadline, budget, backends, regions, reservation, reserved, max_price, optimize, retries, env, secrets, outputs, require_outputs, tags.',
    ],
    [
      'run: x\nenv:\n  A: b\n  __proto__: c',
      '4:3: __proto__ cannot be the name of a field. Choose another name.',
    ],
    [
      'run: x\nresources: {gpus: 1, __proto__: {gpu_memory: 24GB}}',
      '2:22: __proto__ cannot be the name of a field. Choose another name.',
    ],
    // What cannot be written as UTF-8
    [
      'run: "echo \\ud800"',
      '1:6: run has half of a character (a lone surrogate), which is not text. Remove it, or write the whole character.',
    ],
    [
      'run: x\nenv: {A: "\\udfff"}',
      '2:10: env.A has half of a character (a lone surrogate), which is not text. Remove it, or write the whole character.',
    ],
    [
      'run: x\ninterruptible: constructor',
      '2:16: interruptible must be true or false, but is "constructor". Write, for example, interruptible: true.',
    ],
  ])('such as %j', (text, complaint) => {
    expect(complaints(`${text}\n`)).toEqual([complaint])
  })

  it.each([
    [
      'env: { A: $TOKEN }',
      '2:11: env.A has "$TOKEN", but no shell reads this field: the program would get the text as it is written. To send the value that it has here, add --env A="$TOKEN", or A to secrets; for its value on the machine, in run, write: export A=$TOKEN.',
    ],
    [
      'env: { PATH: "/opt/bin:$PATH" }',
      '2:14: env.PATH has "$PATH", but no shell reads this field: the program would get the text as it is written. In run, write: export PATH=/opt/bin:$PATH.',
    ],
    [
      'env:\n  OUT: ${OUT:-/tmp/my out}',
      '3:8: env.OUT has "${OUT:-/tmp/my out}", but no shell reads this field: the program would get the text as it is written. In run, write: export OUT="${OUT:-/tmp/my out}".',
    ],
    [
      'env: { DATA: ~/data }',
      '2:14: env.DATA has "~", but no shell reads this field: the program would get the text as it is written. In run, write: export DATA=~/data.',
    ],
    [
      'env: { A: "pa$$word" }',
      `2:11: env.A has "$word", but no shell reads this field: the program would get the text as it is written. In run, write: export A='pa$$word'.`,
    ],
    [
      'env: { A: "`nproc` x" }',
      '2:11: env.A has "`nproc`", but no shell reads this field: the program would get the text as it is written. In run, write: export A="`nproc` x".',
    ],
    [
      'env: { A: "~bob/x" }',
      '2:11: env.A has "~bob", but no shell reads this field: the program would get the text as it is written. In run, write: export A=~bob/x.',
    ],
    [
      'env: { A: ${OUT:-/x} }',
      '2:11: ${ begins a mapping in YAML here, and no shell reads a job file. Write it in run, whose shell replaces it, such as export OUT=${OUT:-/tmp/out}.',
    ],
    [
      'name: run-$USER',
      '2:7: name "run-$USER" is not lower-case letters, digits and inner dashes. No shell reads this field: write run-user, or leave it out and submit with --name "run-$USER".',
    ],
    [
      'workdir: ~/project',
      '2:10: workdir has "~", but no shell reads this field: the program would get the text as it is written. Write what it stands for.',
    ],
    [
      'inputs: { a: "s3://$BUCKET/a" }',
      '2:14: inputs.a has "$BUCKET", but no shell reads this field: the program would get the text as it is written. Write what it stands for.',
    ],
  ])('has no text for a shell outside of commands: %s', (field, complaint) => {
    expect(complaints(`run: x\n${field}\n`)).toEqual([complaint])
  })

  it('has dollars, tildes and commands that no shell would replace', () => {
    const env = 'env: { A: "^a$", B: "$5", C: "a~b", D: "5 $", E: "~" }'
    expect(complaints(`run: echo $HOME ~\nsetup: ls ~/x\n${env}\nbudget: $5\n`)).toEqual([
      expect.stringContaining('env.E has "~"'),
    ])
  })

  it('is no secret in itself', () => {
    const harmless =
      'TOKENIZERS_PARALLELISM: false\n  EOS_TOKEN: <|endoftext|>\n  MAX_TOKENS: 5\n  API_KEY: ""\n  KEYBOARD: x'
    expect(parsed(`run: x\nenv:\n  ${harmless}\n`).spec.env.EOS_TOKEN).toBe('<|endoftext|>')
  })

  it('is counted against every bound', () => {
    const list = (n: number, entry: (i: number) => string): string =>
      `[${Array.from({ length: n }, (_, i) => entry(i)).join(', ')}]`
    expect(complaints(`run: x\nsecrets: ${list(51, (i) => `A${i}`)}\n`)).toEqual([
      '2:10: secrets has 51 entries of at most 50. Remove some.',
    ])
    expect(complaints(`run: x\ninputs: ${list(101, (i) => `{source: "file:///x", path: a${i}}`)}\n`)).toEqual(
      ['2:9: inputs has 101 entries of at most 100. Remove some.'],
    )
    const variables = Array.from({ length: 201 }, (_, i) => `A${i}: x`).join(', ')
    expect(complaints(`run: x\nenv: {${variables}}\n`)).toEqual([
      '2:6: env has 201 variables of at most 200. Put them into a file.',
    ])
    const tags = Array.from({ length: 11 }, (_, i) => `a${i}: x`).join(', ')
    expect(complaints(`run: x\ntags: {${tags}}\n`)).toEqual([
      '2:7: tags has 11 tags of at most 10. Remove some.',
    ])
    expect(complaints('run: x\ntags: { "a:b": c }\n')).toEqual([
      '2:7: tags has "a:b", which is no key of a tag. Write keys of letters, digits and +-._@, not "Name".',
    ])
    expect(complaints('run: x\ntags: { a: b* }\n')).toEqual([
      '2:7: tags has "b*", which is no value of a tag. Write at most 256 letters, digits, spaces and +-=._:/@.',
    ])
    expect(complaints(`run: ${'x'.repeat(16_385)}\n`)).toEqual([
      '1:6: run has 16385 characters of at most 16384. Shorten it.',
    ])
    const wide = ['A', 'B', 'C'].map((name) => `  ${name}: "${'\\n'.repeat(15_000)}"\n`).join('')
    expect(problems(`run: x\nenv:\n${wide}`)[0]?.message).toContain('the file has')
  })

  it('is reported without a warning of the parser about its own objects', () => {
    const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    expect(complaints('run: x\n? { a: b }\n: c\n')).toEqual([expect.stringContaining('is not a field')])
    expect(warned).not.toHaveBeenCalled()
    warned.mockRestore()
  })

  it('is reported twenty at a time', () => {
    expect(
      problems(`run: x\nenv:\n${Array.from({ length: 50 }, (_, i) => `  ${i}: x\n`).join('')}`),
    ).toHaveLength(20)
  })
})
