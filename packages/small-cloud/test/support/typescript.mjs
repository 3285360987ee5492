import Module from 'node:module'
import { transformFileSync } from '@swc/core'

// For a child process of a test: `node --import <this file> -e "require('./some.ts')"` runs the sources as Jest does.
Module._extensions['.ts'] = (module, path) => {
  const { code } = transformFileSync(path, {
    swcrc: false,
    jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
    module: { type: 'commonjs' },
  })
  module._compile(code, path)
}
