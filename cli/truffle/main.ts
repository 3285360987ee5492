#!/usr/bin/env node
import { createRequire } from 'node:module'
import { enableCompileCache } from '../kit/compile-cache'
import type * as start from './start'

enableCompileCache()

const { startProcess } = createRequire(__filename)('./start') as typeof start
startProcess()
