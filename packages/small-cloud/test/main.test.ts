/** The cloud as a program of its own. */
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { RunInstancesCommand } from '@aws-sdk/client-ec2'
import { SendCommandCommand } from '@aws-sdk/client-ssm'
import { GetCallerIdentityCommand } from '@aws-sdk/client-sts'
import { afterEach, describe, expect, it, jest } from '@jest/globals'
import { main } from '../src/main'
import { testFolder } from './support/folders'
import { until } from './support/until'
import { clientsOf, IMAGE } from './support'

const children: ChildProcess[] = []
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

interface Sim {
  child: ChildProcess
  disks: string
  stdout: () => string
  stderr: () => string
  ended: Promise<number | null>
}

function start(...words: string[]): Sim {
  return startIn(testFolder('sim-test'), words)
}

/** @param disks where its machines' disks are */
function startIn(disks: string, words: string[]): Sim {
  const script =
    'require("./src/main.ts").main(process.argv.slice(1)).then((code) => { process.exitCode = code })'
  const child = spawn(
    process.execPath,
    ['--import', './test/support/typescript.mjs', '-e', script, '--', ...words],
    {
      cwd: join(__dirname, '..'),
      env: { ...process.env, TMPDIR: disks },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  children.push(child)
  const [stdout, stderr]: [string[], string[]] = [[], []]
  child.stdout.on('data', (chunk) => stdout.push(String(chunk)))
  child.stderr.on('data', (chunk) => stderr.push(String(chunk)))
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
  return { child, disks, ended, stdout: () => stdout.join(''), stderr: () => stderr.join('') }
}

interface Ready {
  endpoint: string
  region: string
  accessKeyId: string
  secretAccessKey: string
}

async function ready(sim: Sim): Promise<Ready> {
  await until(() => sim.stdout().endsWith('\n') || sim.child.exitCode !== null)
  return JSON.parse(sim.stdout()) as Ready
}

/** Processes whose command line holds a word; Linux only. */
function processesWith(word: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(word)
    } catch {
      return false
    }
  })
}

describe('the program', () => {
  it('says one line of JSON, serves, and ends with every machine on SIGTERM', async () => {
    const sim = start()
    const { endpoint, ...words } = await ready(sim)
    expect(Object.keys(JSON.parse(sim.stdout()) as Ready)[0]).toBe('endpoint')
    const { sts, ec2, ssm } = clientsOf(endpoint, words)
    await sts.send(new GetCallerIdentityCommand({}))
    const { Instances } = await ec2.send(
      new RunInstancesCommand({
        ImageId: IMAGE,
        MinCount: 1,
        MaxCount: 1,
        IamInstanceProfile: { Name: 'crucible-machine' },
      }),
    )
    const id = Instances![0]!.InstanceId!
    const marker = `31536${process.pid}`
    const send = () =>
      ssm.send(
        new SendCommandCommand({
          InstanceIds: [id],
          DocumentName: 'AWS-RunShellScript',
          Parameters: { commands: [`setsid sleep ${marker} & sleep ${marker}`] },
        }),
      )
    await until(() =>
      send().then(
        () => true,
        () => false,
      ),
    )
    if (existsSync('/proc/self/cmdline')) await until(() => processesWith(marker).length >= 2)
    sim.child.kill('SIGTERM')
    expect([await sim.ended, sim.stderr()]).toEqual([0, ''])
    if (existsSync('/proc/self/cmdline')) expect(processesWith(marker)).toEqual([])
    expect(readdirSync(sim.disks)).toEqual([])
  })

  it('uses the port that it is given, and reports when it cannot', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await until(() => other.listening)
    const { port } = other.address() as AddressInfo
    const sim = start('--port', String(port))
    expect(await sim.ended).toBe(3)
    expect(sim.stderr()).toBe(`port ${port} is taken; give another --port, or none for a free one\n`)
    other.close()
    const second = start('--port', String(port))
    expect((await ready(second)).endpoint).toBe(`http://127.0.0.1:${port}`)
  })

  it('names the port that is taken', async () => {
    const written: string[] = []
    const spy = jest
      .spyOn(process.stderr, 'write')
      .mockImplementation((text) => written.push(String(text)) > 0)
    try {
      const taken = Object.assign(new Error('listen'), { code: 'EADDRINUSE', port: 9 })
      expect(await main(['--store-port', '9'], () => Promise.reject(taken))).toBe(3)
    } finally {
      spy.mockRestore()
    }
    expect(written).toEqual(['port 9 is taken; give another --store-port, or none for a free one\n'])
  })

  it('says which folder it cannot use', async () => {
    const file = join(testFolder('sim-test'), 'file')
    writeFileSync(file, '')
    const sim = startIn(file, [])
    expect(await sim.ended).toBe(3)
    expect(sim.stderr()).toMatch(
      /^\/.*\/file\/crucible-sim-\w+ cannot be used \(ENOTDIR\); set TMPDIR to a folder that this user may write\n$/,
    )
  })

  it('says what is wrong with its arguments and its world', async () => {
    const world = join(testFolder('world'), 'w.yaml')
    writeFileSync(world, 'durations:\n  boot: soon\n')
    const [argument, file] = [start('--porto', '1'), start('--world', world)]
    expect([await argument.ended, argument.stderr()]).toEqual([
      2,
      expect.stringMatching(/'--porto'[^]*usage: small-cloud/),
    ])
    expect([await file.ended, file.stderr()]).toEqual([
      3,
      `${world}:2:9: durations.boot: is not a duration; write 500ms, 90s, 2m, 1h or 3d\n`,
    ])
  })
})
