import Module from 'node:module'
import { join } from 'node:path'
import { transformFileSync } from '@swc/core'

const SMALL_CLOUD = join(import.meta.dirname, '../../packages/small-cloud/src')

// For a child process of a test: `node --import <this file> -e "require('./some.ts')"` runs the sources as Jest does.
Module._extensions['.ts'] = (module, path) => {
  const { code } = transformFileSync(path, {
    swcrc: false,
    jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
    module: { type: 'commonjs' },
  })
  module._compile(code, path)
}

// package.json's `imports` lead to dist/.
const resolve = Module._resolveFilename
Module._resolveFilename = (request, ...others) =>
  resolve(request.replace(/^#small-cloud(?=\/|$)/, SMALL_CLOUD), ...others)
