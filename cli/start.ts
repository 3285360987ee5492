import { completeEnvironment, readCliConfig } from './kit/config'
import { endOnBrokenOutput, endWith, outsideOfProcess } from './kit/process'
import { runCli } from './run'

/** Runs the command line of this process and ends it. */
export function startProcess(): void {
  endOnBrokenOutput()
  completeEnvironment()
  void runCli(process.argv.slice(2), outsideOfProcess(readCliConfig())).then(endWith)
}
