/** Runs in the sandbox of a replayed workflow and hands its commands out, with the inputs that a replay itself does not compare. */
import { proxySinks, type Sinks, type WorkflowInterceptorsFactory } from '@temporalio/workflow'

interface CaptureSinks extends Sinks {
  capture: { commands(commands: unknown[]): void }
}

export const interceptors: WorkflowInterceptorsFactory = () => {
  const { capture } = proxySinks<CaptureSinks>()
  return {
    internals: [
      {
        concludeActivation(input, next) {
          const output = next(input)
          capture.commands([...output.commands])
          return output
        },
      },
    ],
  }
}
