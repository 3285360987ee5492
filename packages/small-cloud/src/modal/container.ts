import type { SandboxSpec } from './sandboxes'

/** The script that runs a container's command with its variables, and nothing else. Volumes are empty folders of the machine's disk. */
export function startScript({ command, env, volumes }: SandboxSpec): string {
  const lines = Object.entries(env).map(([name, value]) => `export ${name}=${quoted(value)}`)
  const folders = Object.keys(volumes).map((path) => `mkdir -p ${quoted(path)}`)
  return ['#!/bin/sh', ...folders, ...lines, `exec ${command.map(quoted).join(' ')}`, ''].join('\n')
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`
}
