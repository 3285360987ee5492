import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { deflateSync, gzipSync } from 'node:zlib'
import { SECOND_MS } from '../core/time/time'
import type { HandOver } from './registry'

/** Tasks of the bootstrap on a machine, in addition to taking the runner from the hand-over. */
export interface BootstrapOptions {
  attemptId: string
  /** Name of the send, for a machine that claims with it (`capabilities.claimsBy`). */
  send?: string
  /** Source of the id that the machine's handle will have; missing if the machine cannot learn it. */
  machineId?: MachineIdSource
  /** How long the machine's money allows it to wait for the runner (`startsWithinMs`); at most, and by default, a quarter of an hour. */
  startsWithinMs?: number
  /** The attempt's directory on the machine; `/var/lib/crucible/<attempt id>` if missing. */
  root?: string
}

/** Where a machine learns its id. If that fails, the runner makes a name. */
type MachineIdSource =
  | { literal: string }
  | { file: string }
  /** An environment variable of the machine. */
  | { variable: string }
  /** A metadata service, asked without proxies; `path` leads to the id inside of a JSON answer. */
  | { url: string; headers?: Record<string, string>; path?: (string | number)[] }

/** Options for a separate machine, which boots with user data. */
export interface CloudInitOptions extends BootstrapOptions {
  /** Whether to power the machine off after the attempt, when its time is over, or if it has nothing to do. True if missing. */
  powersOff?: boolean
}

/** The container that a provider starts. */
export interface ContainerStart {
  command: string[]
  /** The parameters are here and not in the command: the command can be read by every process of the container. */
  environment: Record<string, string>
}

/** The variable of `runner/bootstrap.py` with its parameters. */
const PARAMETERS = 'CRUCIBLE_BOOTSTRAP'
const STATE = '/var/lib/crucible'
const PROGRAM_PATH = `${STATE}/bootstrap.py`
const PARAMETERS_PATH = `${STATE}/bootstrap.json`

/** Folder whose programs cloud-init runs at every boot, so that a machine that boots again continues without the hand-over. */
const PER_BOOT_PATH = '/var/lib/cloud/scripts/per-boot/crucible'

/**
 * Returns user data for cloud-init, at most 16 KB: files, and nothing that looks like a script to a provider's firewall. After
 * `#cloud-config` it is JSON, which is YAML. The runner becomes a unit of systemd; without systemd, a separate process.
 */
export function cloudInit(handOver: HandOver, options: CloudInitOptions): string {
  const { powersOff = true } = options
  const parameters = parametersOf(handOver, options, { isService: true, powersOff })
  const start = startScript(powersOff)
  const file = (path: string, permissions: string, text: string): object => {
    const content = gzipSync(text, { level: 9 }).toString('base64')
    return { path, permissions, encoding: 'gz+b64', content }
  }
  const files = [
    file(PARAMETERS_PATH, '0600', parameters),
    file(PROGRAM_PATH, '0600', readBootstrap()),
    file(PER_BOOT_PATH, '0700', start),
  ]
  return `#cloud-config\n${JSON.stringify({ write_files: files })}\n`
}

/**
 * Returns the script that runs the bootstrap. A bootstrap that ends with 0 or 1 has reported why it started no runner; for any other end,
 * such as a Python that is absent or broken, the script reports it, as far as the image has a program for that.
 */
function startScript(powersOff: boolean): string {
  return [
    '#!/bin/sh',
    'if command -v python3 >/dev/null; then',
    `  python3 -IS ${PROGRAM_PATH} ${PARAMETERS_PATH}`,
    '  status=$?',
    '  if [ $status -le 1 ]; then exit $status; fi',
    // The error of a broken Python, such as a missing library, comes again.
    `  words="$(python3 -IS -c '' 2>&1 | tail -n 1)"`,
    '  words="the start script ended with $status: ${words:-no further message}"',
    'else words="the image has no python3"',
    'fi',
    'echo "crucible: $words" >&2',
    `url="$(sed -n 's/.*"lastWordsUrl":"\\(http[^"]*\\)".*/\\1/p' ${PARAMETERS_PATH} 2>/dev/null)"`,
    'if [ -z "$url" ]; then :',
    'elif command -v curl >/dev/null; then',
    '  printf %s "$words" | curl -fsS -m 60 --retry 3 -X PUT --data-binary @- "$url" >/dev/null',
    'else',
    '  wget -q -O /dev/null --timeout 60 --method PUT --body-data "$words" "$url"',
    'fi',
    ...(powersOff ? ['shutdown -h now'] : []),
    'exit 1',
    '',
  ].join('\n')
}

/**
 * Returns the command of a container: the process becomes the runner, which ends with the attempt. A signal to it drains the attempt.
 * @param python the name or path of a Python 3.8 or newer in the container
 */
export function containerStart(
  handOver: HandOver,
  options: BootstrapOptions,
  python = 'python3',
): ContainerStart {
  const parameters = parametersOf(handOver, options, { isService: false, powersOff: false })
  return {
    command: [python, '-IS', '-c', packedProgram()],
    environment: { [PARAMETERS]: Buffer.from(parameters).toString('base64') },
  }
}

/**
 * Returns a program of `runner/` that starts runners, ready for a machine: preceded by `launching.py` and its other needs, and without
 * comments, which would only take up space.
 */
export function readRunnerProgram(text: string, ...needed: string[]): string {
  const parts = ['launching.py', ...needed].map((name) => readRunnerFile(name))
  return [...parts, text].map(withoutComments).join('\n')
}

/** A file of `runner/`; the build puts it next to this code, too. */
export function readRunnerFile(name: string): string {
  return readFileSync(join(__dirname, '..', 'runner', name), 'utf8')
}

function readBootstrap(): string {
  return readRunnerProgram(readRunnerFile('bootstrap.py'), 'crucible_runner/sealing.py')
}

/** Returns the program as one line without quotes or line breaks, for a command. */
function packedProgram(): string {
  const packed = deflateSync(readBootstrap(), { level: 9 }).toString('base64')
  return `import base64,zlib;exec(zlib.decompress(base64.b64decode('${packed}')).decode())`
}

/**
 * Removes comments. No string of these programs has three quotes or a line that begins with `#`, and none of their bodies is only a
 * comment.
 */
function withoutComments(text: string): string {
  return text.replace(/^[ \t]*"""[\s\S]*?"""\n+/gm, '').replace(/^[ \t]*#.*\n/gm, '')
}

function parametersOf(
  { url, key, lastWordsUrl }: HandOver,
  { attemptId, send, machineId, startsWithinMs, root = `${STATE}/${attemptId}` }: BootstrapOptions,
  { isService, powersOff }: { isService: boolean; powersOff: boolean },
): string {
  const parameters = {
    url,
    key,
    lastWordsUrl,
    attemptId,
    root,
    isService,
    powerOff: powersOff,
    send: send ?? null,
    machineId: machineId ?? null,
    giveUpSeconds: startsWithinMs !== undefined ? Math.floor(startsWithinMs / SECOND_MS) : undefined,
  }
  return JSON.stringify(parameters)
}
