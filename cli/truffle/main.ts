#!/usr/bin/env node
import module, { createRequire } from 'node:module'
import type * as start from './start'

// As in `cli/main.ts`, later starts use the compiled code.
const { enableCompileCache } = module as { enableCompileCache?: () => unknown }
enableCompileCache?.()

const { startProcess } = createRequire(__filename)('./start') as typeof start
startProcess()
