/** Tries as a second user of the operating system to reach a whole `crucible dev` with jobs. The tests need root to become that user. */
import { spawn } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { Client, Connection } from '@temporalio/client'
import { ORCHESTRATOR_QUEUE } from '../../core/queues'
import { CommandLine, build, type Running } from '../cli/process'
import { testFolder } from '../support/folders'
import { testVersitygw } from '../support/s3'
import { testServer } from '../support/temporal'
import { chosen } from '../support/selection'
import { until } from '../support/until'

const STRANGER = 54_321
const asRoot = process.platform === 'linux' && process.getuid?.() === 0 ? describe : describe.skip

/** A file of the proc file system; empty if its process has ended. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function linkAt(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

/** Names in a folder; none if it is gone. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** Every process that names the folder in its arguments or environment, and all their descendants. */
function processesOf(folder: string): number[] {
  const pids = namesIn('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
  const isNamed = (pid: number): boolean =>
    ['cmdline', 'environ'].some((name) => read(`/proc/${pid}/${name}`).includes(folder))
  const parentOf = new Map(
    pids.map((pid) => [pid, Number(/^PPid:\s+(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1])]),
  )
  const family = new Set(pids.filter(isNamed))
  for (let size = -1; size !== family.size;) {
    size = family.size
    for (const [pid, parent] of parentOf) if (family.has(parent)) family.add(pid)
  }
  return [...family]
}

const descriptorsOf = (pid: number): string[] =>
  namesIn(`/proc/${pid}/fd`).map((fd) => linkAt(`/proc/${pid}/fd/${fd}`))

/** Where processes listen, except Temporal and the door of its Web UI, which are open to every user of the host. */
function portsOf(pids: readonly number[], uiUrl: string): [string, number][] {
  const own = new Set(
    pids.filter((pid) => basename(linkAt(`/proc/${pid}/exe`)) !== 'temporal').flatMap(descriptorsOf),
  )
  const rows = ['tcp', 'tcp6'].flatMap((name) => read(`/proc/net/${name}`).trim().split('\n').slice(1))
  return rows
    .map((row) => row.trim().split(/\s+/))
    .filter((fields) => fields[3] === '0A' && own.has(`socket:[${fields[9]}]`))
    .map((fields): [string, number] => ['127.0.0.1', parseInt(fields[1]!.split(':')[1]!, 16)])
    .filter(([, port]) => !uiUrl.endsWith(`:${port}`))
}

function abstractSocketsOf(pids: readonly number[]): string[] {
  const own = new Set(pids.flatMap(descriptorsOf))
  const rows = read('/proc/net/unix').trim().split('\n').slice(1)
  return rows
    .map((row) => row.trim().split(/\s+/))
    .filter(([, , , , , , inode, path]) => own.has(`socket:[${inode}]`) && path?.startsWith('@'))
    .map((fields) => fields[7]!.slice(1))
}

/** A path and everything below it. Files of running programs come and go meanwhile. */
function below(path: string): string[] {
  return [path, ...namesIn(path).flatMap((name) => below(join(path, name)))]
}

/** Files of a deployment and its machines that hold keys. */
const KEY_FILES = /(?:secret\.key|grant\.json|machine\/machine\.json|running\.json|credentials)$/

/** The secrets in variables of the processes, and in the files that hold keys. */
function secretsOf(pids: readonly number[], files: readonly string[]): Record<string, string> {
  const secrets: Record<string, string> = {}
  for (const pid of pids)
    for (const variable of read(`/proc/${pid}/environ`).split('\0')) {
      const [name = '', value = ''] = variable.split('=')
      if (/SECRET|TOKEN|PASSWORD|CANARY/.test(name) && value.length > 12 && !value.includes('/'))
        secrets[name] = value
    }
  for (const path of files.filter((each) => KEY_FILES.test(each)))
    for (const [word] of read(path).matchAll(/[A-Za-z0-9+=_-]{32,}/g))
      secrets[`${path} ${word.slice(0, 3)}`] = word
  return secrets
}

async function lookAsStranger(given: object): Promise<string[]> {
  const child = spawn('/usr/bin/python3', ['-IS', '-c', read(join(__dirname, 'other-user.py'))], {
    uid: STRANGER,
    gid: STRANGER,
    cwd: '/',
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  child.stdin.end(JSON.stringify(given))
  let text = ''
  for await (const piece of child.stdout) text += String(piece)
  return JSON.parse(text) as string[]
}

const CANARY = 'canary-of-a-job-5f1c'
const DEPLOYMENTS = [
  { command: ['dev', '--sim'], backends: ['local', 'ec2'] },
  { command: ['dev'], backends: ['local'] },
]

asRoot.each(chosen(DEPLOYMENTS, DEPLOYMENTS.slice(0, 1)))(
  'another user of the host of crucible $command',
  ({ command, backends }) => {
    const folder = testFolder('other-user')
    const temporary = join(folder, 'tmp')
    const home = join(folder, 'home')
    let crucible: CommandLine
    let dev: Running & { document: Record<string, unknown> }

    beforeAll(async () => {
      build()
      chmodSync(folder, 0o755)
      mkdirSync(temporary)
      chmodSync(temporary, 0o1777)
      writeFileSync(join(folder, 'job.py'), 'import time\nprint("step 1", flush=True)\ntime.sleep(600)\n')
      writeFileSync(join(folder, '.crucibleignore'), 'home\ntmp\n')
      const settings = {
        CRUCIBLE_HOME: home,
        CRUCIBLE_BACKENDS: backends.join(','),
        CRUCIBLE_VERSITYGW: await testVersitygw(),
        CRUCIBLE_TEMPORAL_CLI: testServer().executable.path,
        TMPDIR: temporary,
      }
      crucible = new CommandLine(settings, folder)
      dev = await crucible.ready(...command)
      await Promise.all(backends.map(start))
    }, 240_000)
    afterAll(async () => {
      await crucible.close()
    }, 120_000)

    async function start(backend: string): Promise<void> {
      const id = `on-${backend}`
      await crucible.json('submit', 'job.py', '--id', id, '--backend', backend, '--env', `CANARY=${CANARY}`)
      await until(async () => (await crucible.json('show', id))['state'] === 'running', 120_000)
    }

    it('gets nothing by processes, files and ports', async () => {
      const pids = processesOf(folder)
      const given = {
        pids,
        files: filesOf(pids),
        ports: portsOf(pids, String(dev.document['uiUrl'])),
        abstract: abstractSocketsOf(pids),
      }
      const secrets = secretsOf(pids, given.files)
      expect(pids).toContain(dev.child.pid)
      expect(given.files.length).toBeGreaterThan(50)
      expect(Object.values(secrets)).toContain(CANARY)
      expect(Object.keys(secrets).length).toBeGreaterThan(2 * backends.length)
      expect(given.ports.length).toBeGreaterThanOrEqual(3 * (backends.length - 1))
      expect(await lookAsStranger({ ...given, secrets })).toEqual([])
    }, 120_000)

    it('reads workflows in Temporal without any key, and starts none', async () => {
      const connection = await Connection.connect({ address: String(dev.document['address']) })
      const client = new Client({ connection, namespace: String(dev.document['namespace']) })
      const shown: string[] = []
      for await (const { workflowId } of client.workflow.list())
        shown.push(JSON.stringify(await client.workflow.getHandle(workflowId).fetchHistory()))
      const pids = processesOf(folder)
      const secrets = secretsOf(pids, filesOf(pids))
      const texts = Object.entries(secrets).map(([name, secret]) => [name, secret, asBase64(secret)] as const)
      // Payloads are bytes, which JSON has in base64, at one of three offsets.
      const found = texts.filter(([, ...forms]) =>
        forms.flat().some((form) => shown.some((text) => text.includes(form))),
      )
      expect(found.map(([name]) => name)).toEqual(['CANARY'])
      const started = await client.workflow.start('job', {
        workflowId: 'job/stranger',
        taskQueue: ORCHESTRATOR_QUEUE,
        args: [{}],
      })
      await expect(started.result()).rejects.toThrow()
      await connection.close()
    }, 120_000)

    /** The home, the temporary folder, the folders of local jobs, and everything of the folder that a process has open. */
    function filesOf(pids: readonly number[]): string[] {
      const folders = pids
        .map((pid) => linkAt(`/proc/${pid}/cwd`))
        .filter((path) => /^\/var\/lib\/crucible\/./.test(path))
      const opened = pids.flatMap(descriptorsOf).filter((path) => path.startsWith(folder))
      const inside = namesIn(temporary).map((name) => join(temporary, name))
      return [...new Set([...[home, ...inside, ...folders].flatMap(below), ...opened])]
    }
  },
)

/** A text in base64 as it is in a longer one, whatever comes before it. */
function asBase64(text: string): string[] {
  return [0, 1, 2].map((offset) => {
    const encoded = Buffer.from(`${'.'.repeat(offset)}${text}`).toString('base64')
    return encoded.slice(offset === 0 ? 0 : 4, -4)
  })
}
