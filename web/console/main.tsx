// The console: starts it.

import { render } from "preact";
import { findPerson } from "../shared/api.ts";
import { language } from "../shared/i18n.ts";
import { listen } from "../shared/keys.ts";
import { follow } from "../shared/route.ts";
import { complain } from "../shared/ui.tsx";
import { App } from "./app.tsx";
import { applyTheme } from "../shared/theme.ts";

document.documentElement.lang = language.value;
applyTheme();
follow();
listen();
findPerson().catch(complain);
render(<App />, document.getElementById("app")!);
