/** The runner's own code against programs of the small cloud's machines. */
import { execFileSync } from 'node:child_process'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { inventoryOf } from '../../backends/local/gpus'
import { HAS_NAMESPACES, KINDS, sh, useMachines } from '../../packages/small-cloud/test/machines/machines'
import { registriesOf } from '../../packages/small-cloud/test/registries'
import type { Machine } from '#small-cloud/machines/machine'
import { nvidiaSmi, type SimulatedGpu } from '#small-cloud/machines/nvidia-smi'

const RUNNER = join(__dirname, '../../runner')
const createWorld = useMachines()
const test = HAS_NAMESPACES ? it : it.skip

function ask(gpus: SimulatedGpu[], ...words: string[]): string {
  return nvidiaSmi({ program: 'nvidia-smi', arguments: words, directory: '/' }, gpus).stdout
}

const TWO: SimulatedGpu[] = [
  { name: 'Tesla V100-SXM2-16GB', memoryMiB: 16_160 },
  { name: 'NVIDIA A10G', memoryMiB: 23_028, memoryUsedMiB: 2048, utilizationPercent: 93 },
]

describe('nvidia-smi of a small cloud', () => {
  it('is understood by those of us who ask it', () => {
    const listing = ask(TWO, '--query-gpu=index,uuid,name,memory.total', '--format=csv,noheader,nounits')
    const { gpus, trouble } = inventoryOf({ kind: 'answered', output: listing })
    expect(trouble).toBeUndefined()
    expect(gpus.map(({ index, memoryGiB }) => [index, Math.floor(memoryGiB)])).toEqual([
      [0, 15],
      [1, 22],
    ])
    const query = '--query-gpu=index,name,utilization.gpu,memory.used,memory.total'
    const use = ask(TWO, query, '--format=csv,noheader,nounits')
    const program =
      'import json, sys; from crucible_runner.process.gpus import parse_gpus; print(json.dumps(parse_gpus(sys.argv[1])))'
    const parsed = execFileSync('python3', ['-c', program, use], { cwd: RUNNER, encoding: 'utf8' })
    expect(JSON.parse(parsed)).toMatchObject([
      { index: 0, name: 'Tesla V100-SXM2-16GB', utilizationPercent: 0, memoryTotalMiB: 16_160 },
      { index: 1, utilizationPercent: 93, memoryUsedMiB: 2048 },
    ])
  })
})

describe('docker of a small cloud', () => {
  test('does what the runner asks of it: set-up and command in one container, and a stop that lets the command save', async () => {
    const world = createWorld()
    const directory = join(world.directory, 'disk')
    const docker = registriesOf({
      docker: {
        absentImages: ['absent'],
        logins: { 'registry.example.com': { username: 'me', password: 'secret' } },
      },
    }).ask
    const machine = world.create({ directory, docker, gpus: [{ name: 'NVIDIA L4', memoryMiB: 23_034 }] })
    await machine.boot()
    cpSync(RUNNER, join(directory, 'var/lib/crucible/runner'), { recursive: true })
    const program = `
import os, subprocess, sys, time
from crucible_runner import endings
from crucible_runner.process import container
from crucible_runner.clock import Clock
from crucible_runner.image.pulling import Login, Puller, Wanted
from crucible_runner.paths import Paths
root = "/var/lib/crucible/a"
paths = Paths(root)
paths.make()
control = paths.control
docker = container.find_docker()
def pull(image, login=None):
    try:
        Puller(docker, root + "/login", Clock(), lambda _: None, lambda: False).pull(Wanted(image, login), os.environ, 0)
        return "here"
    except endings.Failed as error:
        return error.reason
private = "registry.example.com/image:1"
print([pull(private), pull(private, Login("me", "wrong")), pull("absent:1"), pull(private, Login("me", "secret")), os.path.exists(root + "/login")])
run = 'cat set-up; trap "echo saved; exit 143" TERM; echo up; while :; do sleep 0.1; done'
order = {"attemptId": "job-1-1", "image": private, "setup": "echo being set up > set-up", "run": run, "shmGiB": 0.25}
inside = container.carried({"CRUCIBLE_CONTROL_DIR": control})
command = container.container_command(docker, order, paths, inside, container.gpus_for_docker(True, None))
child = subprocess.Popen(command, stdout=subprocess.PIPE, env=dict(os.environ, **inside.variables))
lines = [child.stdout.readline().decode().strip() for _ in range(2)]
print(lines, sorted(os.listdir(control)))
container.ask_to_stop(docker, container.container_name("job-1-1"))
print(child.stdout.read().decode().strip(), child.wait())
container.remove_container(container.container_name("job-1-1"))`
    const answer = await machine.run({
      id: 'runner',
      lines: ['#!/usr/bin/env python3', ...program.split('\n')],
      timeoutMs: 30_000,
      environment: { PYTHONPATH: '/var/lib/crucible/runner', PYTHONDONTWRITEBYTECODE: '1' },
    })
    expect(answer).toMatchObject({
      exitCode: 0,
      stdout:
        "['image-login', 'image-login', 'image', 'here', False]\n['being set up', 'up'] ['began', 'saved', 'setup-done']\nsaved 143\n",
    })
    expect((await sh(machine, 'docker ps -aq')).stdout).toBe('')
  })
})

describe.each(KINDS)('the directory of a job on machines of %s', (enclosure) => {
  /** A program that takes the directory as a machine does for an attempt. It prints the directory's path and content. */
  const TAKE = `
import os, sys
from launching import job_root
from crucible_runner.process import job_root as claims
attempt = os.environ["ATTEMPT"]
root = os.path.join(os.environ.get("STATE_DIRECTORY") or "/var/lib/crucible", attempt)
os.makedirs(root)
path = job_root(root, "train")
claims.take(path, attempt + ".dep-test")
print(path, os.path.exists(path + "/best.bin"))
os.makedirs(path)
os.chdir(path)
assert os.getcwd() == path, os.getcwd()
open("best.bin", "w").close()
`

  async function take(machine: Machine, directory: string, attempt: string): Promise<string> {
    const code = join(directory, 'var/lib/code')
    cpSync(RUNNER, code, { recursive: true })
    const at = enclosure === 'namespaces' ? '/var/lib/code' : code
    const answer = await machine.run({
      id: attempt,
      lines: ['#!/usr/bin/env python3', ...TAKE.split('\n')],
      timeoutMs: 30_000,
      environment: { PYTHONPATH: at, PYTHONDONTWRITEBYTECODE: '1', ATTEMPT: attempt },
    })
    expect(answer).toMatchObject({ exitCode: 0, stderr: '' })
    return answer.stdout
  }

  it('has one path on all machines, and is empty for each of them', async () => {
    const world = createWorld()
    const paths = []
    for (const attempt of ['train-1', 'train-2']) {
      const directory = join(world.directory, attempt)
      const machine = world.create({ directory, enclosure })
      await machine.boot()
      paths.push(await take(machine, directory, attempt))
      await machine.kill()
    }
    expect(paths[0]).toMatch(/False\n$/)
    expect(paths[1]).toBe(paths[0])
  })

  it('has a runner that finds none of its own processes outside of the machine', async () => {
    const world = createWorld()
    const directory = join(world.directory, 'disk')
    const machine = world.create({ directory, enclosure })
    await machine.boot()
    const code = join(directory, 'var/lib/code')
    cpSync(RUNNER, code, { recursive: true })
    const look = `
import os
from crucible_runner.process.processes import of_machine
print([pid for pid in of_machine("train-1.dep", [], []) if os.getsid(pid) != os.getsid(0)])`
    const at = enclosure === 'namespaces' ? '/var/lib/code' : code
    const answer = await machine.run({
      id: 'look',
      lines: ['#!/usr/bin/env python3', ...look.split('\n')],
      timeoutMs: 30_000,
      environment: { PYTHONPATH: at, PYTHONDONTWRITEBYTECODE: '1', CRUCIBLE_MACHINE: 'train-1.dep' },
    })
    expect(answer).toMatchObject({ exitCode: 0, stdout: '[]\n', stderr: '' })
  })
})
