/** A position in a value: names of fields and numbers of entries. */
export type Path = readonly PropertyKey[]

/** A problem in a value, before its line or flag is known. */
export interface Fault {
  path: Path
  /** The field's name is wrong rather than its value. */
  isAboutName?: boolean
  /** The problem, without a full stop: completes "<field> ...", or is a separate clause if the path is empty. */
  message: string
  /** The correction, in the imperative, without a full stop. Derived from the schema's examples if missing. */
  remedy?: string
}

/** A problem in user input, with its position. @public */
export interface Problem {
  /** The file, as the user named it; missing without a file. */
  file?: string
  /** Starts at 1. */
  line?: number
  /** Starts at 1, in characters. */
  column?: number
  /** The command-line flag, if the value came from one. */
  flag?: string
  /** The field, such as `resources.gpus` or `inputs[0].source`; empty for the whole document. */
  path: string
  /** The problem, without a full stop: completes "<field> ...", or is a separate clause if the path is empty. */
  message: string
  /** The correction, in the imperative, without a full stop. */
  remedy: string
}

/**
 * Formats a problem as one line for a person: `job.yaml:7:9: resources.gpus "four" is not a count. Write, for example, gpus: 1.` @public
 */
export function formatProblem(problem: Problem): string {
  const { file, line, column, flag, path, message, remedy } = problem
  const place = [file, line, column].filter((part) => part !== undefined).join(':')
  const subject = flag ?? path
  return `${place === '' ? '' : `${place}: `}${subject === '' ? '' : `${subject} `}${message}. ${capital(remedy)}${remedy.endsWith('?') ? '' : '.'}`
}

/** `inputs[0].source`, `inputs["data/x.bin"]` */
export function formatPath(path: Path): string {
  return path
    .map((part, index) => {
      if (typeof part === 'number') return `[${part}]`
      const name = String(part)
      if (!/^[\w-]+$/.test(name)) return `[${JSON.stringify(name)}]`
      return index === 0 ? name : `.${name}`
    })
    .join('')
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
