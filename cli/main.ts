#!/usr/bin/env node
import module from 'node:module'
import { readCliConfig } from './config'
import { runCli } from './run'

// Node 22 and later keep what they compiled, which halves the start.
const { enableCompileCache } = module as { enableCompileCache?: () => unknown }
enableCompileCache?.()

// Whoever reads us may stop early (`crucible logs | head`).
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
})

void runCli(process.argv.slice(2), {
  config: readCliConfig(),
  stdout: process.stdout,
  stderr: process.stderr,
  signals: process,
  exit: (code) => process.exit(code),
  now: Date.now,
}).then((exitCode) => {
  process.exitCode = exitCode
})
